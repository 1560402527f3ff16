// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The committed files must be what the go:generate line makes of the source,
// made in another directory, so that no path is in them.
func TestGeneratedFilesAreWhatTheSourceMakes(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^//go:generate go tool bpf2go (.*)$`).FindSubmatch(doc)
	if line == nil {
		t.Fatal("doc.go has no go:generate line for bpf2go")
	}
	args := strings.Fields(string(line[1]))
	requireCompiler(t, args)

	tool, err := exec.Command("go", "tool", "-n", "bpf2go").Output()
	if err != nil {
		t.Fatalf("go tool -n bpf2go: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	generate := exec.Command(strings.TrimSpace(string(tool)), args...)
	generate.Dir = dir
	generate.Env = append(os.Environ(), "GOPACKAGE=bpf", "GOFILE=doc.go", "PWD="+dir)
	for _, name := range []string{"redirect_bpfel.go", "redirect_bpfel.o"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	for _, name := range []string{"redirect_bpfel.go", "redirect_bpfel.o"} {
		if !bytes.Equal(read(t, name), read(t, filepath.Join(dir, name))) {
			t.Errorf("%s is not what redirect.bpf.c makes: run go generate ./bpf", name)
		}
	}
}

// requireCompiler skips without the pinned compiler, but not in CI.
func requireCompiler(t *testing.T, args []string) {
	t.Helper()
	for i, arg := range args[:len(args)-1] {
		if arg != "-cc" {
			continue
		}
		if _, err := exec.LookPath(args[i+1]); err == nil {
			return
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed, and CI=true forbids skipping", args[i+1])
		}
		t.Skipf("%s is not installed", args[i+1])
	}
	t.Fatal("the go:generate line names no compiler with -cc")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestObjectHasNoPathOfTheMachineItWasMadeOn(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range []string{"/home/", "/root/", "/usr/", "/tmp/", here, "clang version"} {
		if bytes.Contains(_RedirectBytes, []byte(trace)) {
			t.Errorf("the object contains %q", trace)
		}
	}
}
