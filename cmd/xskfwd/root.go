// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xskfwd/xskfwd/internal/config"
)

// The exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // something failed, or cannot be had on this machine
	exitUsage   = 2 // the command line or the configuration file is wrong on any machine; nothing was started
)

// failure is an error of a command that was understood. All others are mistakes
// in how it was called.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// main runs one command line and returns the exit code.
func (e *env) main(args []string) int {
	root := e.root()
	root.SetArgs(args)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	return e.report(root.Execute())
}

// report writes each mistake on a line of its own.
func (e *env) report(err error) int {
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(e.stderr, "xskfwd: %s\n", line)
	}
	var f failure
	if errors.As(err, &f) {
		return exitFailure
	}
	return exitUsage
}

func (e *env) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "xskfwd",
		Short:         "forward packets between network ports through AF_XDP sockets",
		Args:          knownCommand,
		RunE:          noCommand,
		Version:       e.programVersion(),
		SilenceErrors: true, // report writes them
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("xskfwd {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2 // one pair of letters swapped
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(e.runCommand(), e.demoCommand(), e.detachCommand(), e.versionCommand(), e.completionCommand(), e.manCommand())
	return root
}

func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %s?", args[0], near[0])
	}
	return fmt.Errorf("unknown command %q; xskfwd --help lists the commands", args[0])
}

func noCommand(cmd *cobra.Command, _ []string) error {
	cmd.SetOut(cmd.ErrOrStderr())
	if err := cmd.Help(); err != nil {
		return failed(err)
	}
	return errors.New("no command given")
}

// noArguments is for commands that have flags only. The hint says what the
// argument may have been meant for; it may be empty.
func noArguments(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("unexpected argument %q%s", args[0], hint)
	}
}

func flagError(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if near := config.Nearest(name, flagNames(cmd)); unknown && near != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, near)
	}
	return fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath())
}
