// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func (e *env) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man [DIR]",
		Short:  "print the man page, or write it to a directory",
		Hidden: true, // for packagers
		Args:   cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			page := e.manPage(cmd.Root())
			if len(args) == 0 {
				_, err := e.stdout.Write(page)
				return failed(err)
			}
			if args[0] == "" {
				return errors.New(`man "": names no directory; leave the argument out to print the page`)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return failed(err)
			}
			return failed(os.WriteFile(filepath.Join(args[0], "xskfwd.8"), page, 0o644))
		},
	}
}
