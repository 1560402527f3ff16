// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (e *env) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the versions of xskfwd, Go and the kernel",
		Args:  noArguments(""),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.stdout, "xskfwd   %s\nrevision %s\ngo       %s %s/%s\nkernel   %s\n",
				e.programVersion(), e.revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH, e.kernel())
			return failed(err)
		},
	}
}

// programVersion is what Go recorded in the binary: a tag, or "(devel)".
func (e *env) programVersion() string {
	info, ok := e.buildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// revision is the commit the binary was built from.
func (e *env) revision() string {
	info, ok := e.buildInfo()
	if !ok {
		return "unknown"
	}
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	switch commit := recorded["vcs.revision"]; {
	case commit == "":
		return "unknown"
	case recorded["vcs.modified"] == "true":
		return commit + " (modified)"
	default:
		return commit
	}
}
