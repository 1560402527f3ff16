// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// makeTarget runs a target of the Makefile on a tree that has been built.
func makeTarget(t *testing.T, tree, target, dest string) {
	t.Helper()
	makefile, err := filepath.Abs("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", "-f", makefile, "-o", "build", "-o", "man", target,
		"DESTDIR="+dest, "PREFIX=/usr", "SYSCONFDIR=/etc")
	cmd.Dir = tree
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // of a make that runs the tests
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	})
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
}

// builtTree is what install takes its files from, with stand-ins for what is built.
func builtTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	if err := os.CopyFS(filepath.Join(tree, "configs"), os.DirFS("../../configs")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin/xskfwd", "bin/man/xskfwd.8"} {
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestUninstallLeavesOnlyTheConfiguration(t *testing.T) {
	tree, dest := builtTree(t), t.TempDir()
	makeTarget(t, tree, "install", dest)
	foreign := filepath.Join(dest, "usr/sbin/other")
	if err := os.WriteFile(foreign, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"etc/xskfwd/xskfwd.toml", "usr/lib/systemd/system/xskfwd.service", "usr/sbin/other", "usr/sbin/xskfwd",
		"usr/share/man/man8/xskfwd.8",
	}
	if diff := cmp.Diff(want, filesIn(t, dest)); diff != "" {
		t.Fatalf("installed (-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(filepath.Join(tree, "bin")); err != nil { // make clean
		t.Fatal(err)
	}
	for range 2 { // there may be nothing left to remove
		makeTarget(t, tree, "uninstall", dest)
		if diff := cmp.Diff([]string{"etc/xskfwd/xskfwd.toml", "usr/sbin/other"}, filesIn(t, dest)); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
	}
}
