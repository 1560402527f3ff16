// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xskfwd/xskfwd/internal/config"
)

const completionText = `Print a script that teaches the shell to complete xskfwd's commands and flags, the
names of devices included.

  bash: xskfwd completion bash > /etc/bash_completion.d/xskfwd
  zsh:  xskfwd completion zsh > /usr/share/zsh/site-functions/_xskfwd
  fish: xskfwd completion fish > /etc/fish/completions/xskfwd.fish`

func (e *env) completionCommand() *cobra.Command {
	scripts := map[string]func(root *cobra.Command) error{
		"bash": func(root *cobra.Command) error { return root.GenBashCompletionV2(e.stdout, true) },
		"zsh":  func(root *cobra.Command) error { return root.GenZshCompletion(e.stdout) },
		"fish": func(root *cobra.Command) error { return root.GenFishCompletion(e.stdout, true) },
	}
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:       "completion " + strings.Join(shells, "|"),
		Short:     "print a completion script for a shell",
		Long:      completionText,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && scripts[args[0]] != nil {
				return nil
			}
			return fmt.Errorf("completion %s: name one shell; allowed: %s", strings.Join(args, " "), strings.Join(shells, ", "))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(scripts[args[0]](cmd.Root()))
		},
	}
}

type completer = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// completeFlags tells the shell what the values of the run flags can be.
func (e *env) completeFlags(cmd *cobra.Command, flags flagValues) {
	for name, flag := range flags {
		complete := completer(cobra.NoFileCompletions)
		switch {
		case name == "port":
			complete = e.completePort
		case name == "wire":
			complete = completeWire(flags)
		case name == "config":
			complete = completeTOML
		case len(flag.option.choices) > 0:
			complete = cobra.FixedCompletions(flag.option.choices, cobra.ShellCompDirectiveNoFileComp)
		}
		// It fails only for a flag that is not there, or for the second time.
		_ = cmd.RegisterFlagCompletionFunc(name, complete)
	}
}

func completeTOML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completePort offers the devices. Queues are left to the user.
func (e *env) completePort(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, err := e.devices()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeWire offers the pairs of ports given so far that are in no wire yet.
func completeWire(flags flagValues) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		free := unwired(flags["port"].values, flags["wire"].values)
		var pairs []string
		for i, a := range free {
			for _, b := range free[i+1:] {
				pairs = append(pairs, a+"="+b)
			}
		}
		return pairs, cobra.ShellCompDirectiveNoFileComp
	}
}

// unwired may find each port more than once: to complete a line, cobra reads its
// flags twice.
func unwired(ports, wires []string) []string {
	var taken, free []string
	for _, text := range wires {
		if wire, err := config.ParseWire(text); err == nil {
			taken = append(taken, wire.A, wire.B)
		}
	}
	for _, text := range ports {
		if port, err := config.ParsePort(text); err == nil && !slices.Contains(taken, port.Name) {
			taken = append(taken, port.Name)
			free = append(free, port.Name)
		}
	}
	return free
}
