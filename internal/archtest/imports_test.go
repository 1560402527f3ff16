// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strconv"
	"strings"
	"testing"
)

func TestImportsPointDownwardAndStayWithinTheTable(t *testing.T) {
	for _, s := range sources(t) {
		if s.ast == nil {
			continue
		}
		r, known := rules[s.dir]
		if !known {
			t.Errorf("%s: package %s has no row in rules_test.go", s.name, s.dir)
			continue
		}
		for _, imported := range imports(t, s) {
			if why := refuse(s, r, imported); why != "" {
				t.Errorf("%s: imports %s: %s", s.name, imported, why)
			}
		}
	}
}

// refuse says why a file may not import a package, or nothing.
func refuse(s *source, r rule, imported string) string {
	switch own, ours := strings.CutPrefix(imported, module+"/"); {
	case imported == "unsafe":
		if !has(unsafeHome, s.dir) && !s.generated() {
			return "only internal/xsk may"
		}
	case imported == "C":
		return "no cgo"
	case ours:
		return refuseOurs(s, r, own)
	case strings.Contains(strings.Split(imported, "/")[0], "."):
		if allowed := within(imported, r.theirs) || s.test && within(imported, testTheirs); !allowed {
			return "its row does not name that module"
		}
	}
	return ""
}

func refuseOurs(s *source, r rule, own string) string {
	if s.test && (own == s.dir || has(testOurs, own)) {
		return ""
	}
	if rules[own].level >= r.level {
		return "not a lower level"
	}
	if !s.test && r.ours != "*" && !has(r.ours, own) {
		return "its row does not name that package"
	}
	return ""
}

// within says whether a package belongs to one of the modules.
func within(pkg, modules string) bool {
	for m := range strings.FieldsSeq(modules) {
		if pkg == m || strings.HasPrefix(pkg, m+"/") {
			return true
		}
	}
	return false
}

func imports(t *testing.T, s *source) []string {
	t.Helper()
	var paths []string
	for _, i := range s.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatalf("%s: import %s: %v", s.name, i.Path.Value, err)
		}
		paths = append(paths, p)
	}
	return paths
}
