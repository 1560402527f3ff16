// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are held against the tree.
func documents(t *testing.T) []*source {
	t.Helper()
	var docs []*source
	for _, s := range sources(t) {
		if path.Ext(s.name) == ".md" {
			docs = append(docs, s)
		}
	}
	return docs
}

func TestArchitectureListsThePackagesThereAre(t *testing.T) {
	doc, err := read(root + "/docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(doc.text, "\n## Packages\n")
	if !found {
		t.Fatal("docs/ARCHITECTURE.md: no section Packages")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| \\d \\| `([^`]+)`").FindAllStringSubmatch(table, -1) {
		listed[row[1]] = true
	}
	there := packages(t)
	for _, p := range slices.Sorted(maps.Keys(there)) {
		if !listed[p] {
			t.Errorf("docs/ARCHITECTURE.md: package %s is not in the table", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(listed)) {
		if !there[p] && !has(coming, p) {
			t.Errorf("docs/ARCHITECTURE.md: lists package %s, which is not there", p)
		}
	}
}

// packages is the set `go list ./...` prints: the directories that hold Go files.
func packages(t *testing.T) map[string]bool {
	t.Helper()
	there := map[string]bool{}
	for _, s := range sources(t) {
		if s.ast != nil {
			there[s.dir] = true
		}
	}
	return there
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, d := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(d.text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, heading, _ := strings.Cut(m[1], "#")
			target := d
			if file != "" {
				name := path.Join(root, path.Dir(d.name), file)
				if !exists(name) && !has(coming, path.Join(path.Dir(d.name), file)) {
					t.Errorf("%s: link to %s: no such file", d.name, m[1])
				}
				if heading == "" {
					continue
				}
				var err error
				if target, err = read(name); err != nil {
					t.Fatal(err)
				}
			}
			if !anchors(target.text)[heading] {
				t.Errorf("%s: link to %s: no such heading", d.name, m[1])
			}
		}
	}
}

// anchors is the set of names that headings get on the usual forges.
func anchors(text string) map[string]bool {
	odd := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	set := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(text, -1) {
		set[strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return set
}

// A name in backticks is meant to be in the tree if it begins with a directory of the tree, or has the look of a
// source file.
func TestFilesNamedInDocumentsExist(t *testing.T) {
	ticked := regexp.MustCompile("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+|[A-Za-z0-9_.-]+\\.(?:go|c|md))`")
	for _, d := range documents(t) {
		for _, m := range ticked.FindAllStringSubmatch(d.text, -1) {
			first, _, nested := strings.Cut(m[1], "/")
			if nested && !exists(path.Join(root, first)) {
				continue // not a path of ours: a module, a file of the kernel
			}
			beside := path.Join(root, path.Dir(d.name), m[1])
			if !exists(path.Join(root, m[1])) && !exists(beside) && !has(coming, m[1]) {
				t.Errorf("%s: names %s, which is not there", d.name, m[1])
			}
		}
	}
}

func TestWhatIsThereIsNoLongerComing(t *testing.T) {
	there := packages(t)
	for name := range strings.FieldsSeq(coming) {
		_, isPackage := rules[name]
		if there[name] || !isPackage && exists(path.Join(root, name)) {
			t.Errorf("%s is there: take it off the list in rules_test.go", name)
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func TestMakeCommandsInDocumentsAreTargets(t *testing.T) {
	makefile, err := read(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `).FindAllStringSubmatch(makefile.text, -1) {
		targets[m[1]] = true
	}
	command := regexp.MustCompile("(?m)(?:^(?:sudo )?|`(?:sudo )?)make ([a-z][a-z0-9-]*)")
	for _, d := range documents(t) {
		for _, m := range command.FindAllStringSubmatch(d.text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s: tells to run make %s, which is no target of the Makefile", d.name, m[1])
			}
		}
	}
}

func TestEveryMakeTargetHasItsLineOfHelp(t *testing.T) {
	makefile, err := read(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\.PHONY: (.+)\n(.*)$`).FindAllStringSubmatch(makefile.text, -1) {
		if !strings.HasPrefix(m[2], m[1]+":") || !strings.Contains(m[2], " ## ") {
			t.Errorf("Makefile: target %s has no line of help", m[1])
		}
	}
}
