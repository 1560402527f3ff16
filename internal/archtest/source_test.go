// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// A source is one file of the repository, named from its root.
type source struct {
	name string
	text string
	dir  string // of the package, for a Go file
	test bool   // a _test.go file
	ast  *ast.File
	fset *token.FileSet
}

func (s *source) generated() bool { return s.ast != nil && ast.IsGenerated(s.ast) }

// line is the number, from 1, of the line that holds a node.
func (s *source) line(n ast.Node) int { return s.fset.Position(n.Pos()).Line }

// sources reads the files that people write: no build output, no test data, nothing binary.
func sources(t *testing.T) []*source {
	t.Helper()
	var all []*source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if has(".git bin dist testdata", d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !isSource(name) {
			return nil
		}
		s, err := read(name)
		if err == nil {
			all = append(all, s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func isSource(name string) bool {
	if path.Base(path.Dir(name)) == ".ci" || path.Base(name) == "Makefile" {
		return true
	}
	return has(".go .c .h .sh .yml .md .service", path.Ext(name))
}

func read(name string) (*source, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := &source{name: strings.TrimPrefix(name, root+"/"), text: string(text)}
	if path.Ext(name) == ".go" {
		s.dir, s.test = path.Dir(s.name), strings.HasSuffix(name, "_test.go")
		s.fset = token.NewFileSet()
		s.ast, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	}
	return s, err
}

func TestEverySourceFileNamesItsLicence(t *testing.T) {
	for _, s := range sources(t) {
		if path.Ext(s.name) == ".md" || s.generated() {
			continue
		}
		want := "SPDX-License-Identifier: Apache-2.0"
		if has(".c .h", path.Ext(s.name)) {
			want = "SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0" // what the kernel loads
		}
		head := strings.SplitN(s.text, "\n", 4)
		if !strings.Contains(strings.Join(head[:min(3, len(head))], "\n"), want) {
			t.Errorf("%s: no %q in its first three lines", s.name, want)
		}
	}
}

func TestNoFileOrPackageIsADrawerForOddments(t *testing.T) {
	drawer := regexp.MustCompile(`^(utils?|common|helpers?|types|misc)$`)
	for _, s := range sources(t) {
		for part := range strings.SplitSeq(strings.TrimSuffix(s.name, path.Ext(s.name)), "/") {
			if drawer.MatchString(strings.TrimSuffix(part, "_test")) {
				t.Errorf("%s: name it after the one idea it holds", s.name)
			}
		}
	}
}

func TestOpenWorkNamesItsIssue(t *testing.T) {
	mark := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b(\(#\d+\))?`)
	for _, s := range sources(t) {
		for i, line := range strings.Split(s.text, "\n") {
			if m := mark.FindStringSubmatch(line); m != nil && m[2] == "" {
				t.Errorf("%s:%d: %s without an issue, as in %[3]s(#12)", s.name, i+1, m[1])
			}
		}
	}
}

func TestEveryAtomicStoreSaysItsOrdering(t *testing.T) {
	for _, s := range sources(t) {
		if s.ast == nil || s.test || !has(orderedPackages, s.dir) {
			continue
		}
		lines := strings.Split(s.text, "\n")
		calls(s, func(name string, at int) {
			if !isAtomicStore(name) {
				return
			}
			near := lines[max(0, at-4):at] // its own line and the three above
			if !strings.Contains(strings.Join(near, "\n"), "Ordering:") {
				t.Errorf("%s:%d: %s without an Ordering: comment within 3 lines above", s.name, at, name)
			}
		})
	}
}

// isAtomicStore tells by the name: atomic.StoreUint32, x.Store, x.Swap, x.CompareAndSwap. Adding to a counter is
// no publication and is left out.
func isAtomicStore(call string) bool {
	_, method, found := strings.Cut(call, ".")
	if !found {
		return false
	}
	method = method[strings.LastIndex(method, ".")+1:]
	if strings.HasPrefix(call, "atomic.") {
		return regexp.MustCompile(`^(Store|Swap|CompareAndSwap)`).MatchString(method)
	}
	return has("Store Swap CompareAndSwap", method)
}

func TestForbiddenCallsAreNotMade(t *testing.T) {
	for _, s := range sources(t) {
		if s.ast == nil || s.generated() {
			continue
		}
		calls(s, func(name string, at int) {
			for _, f := range forbiddenCalls {
				if name == f.call && s.test == f.inTests && !has(f.allowed, s.dir) {
					t.Errorf("%s:%d: %s: %s", s.name, at, name, f.why)
				}
			}
		})
	}
}

func TestNoPackageRunsCodeByBeingImported(t *testing.T) {
	for _, s := range sources(t) {
		if s.ast == nil || s.generated() {
			continue
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: func init: let the caller call it", s.name, s.line(f))
			}
		}
	}
}

// calls reports every call by name ("panic", "time.Sleep", "r.producer.Store") and line.
func calls(s *source, report func(name string, line int)) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if name := dotted(c.Fun); name != "" {
				report(name, s.fset.Position(c.Lparen).Line)
			}
		}
		return true
	})
}

func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if left := dotted(e.X); left != "" {
			return left + "." + e.Sel.Name
		}
		return "?." + e.Sel.Name // a method of something computed
	}
	return ""
}
