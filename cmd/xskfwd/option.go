// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/xskfwd/xskfwd/internal/config"
)

// option is one flag of a command: what --help, the man page and the shell's
// completion need to know.
type option struct {
	name, short string
	arg         string // stands for the value; empty for a switch
	help        string // one line
	more        string // what else the man page says
	def         string
	unit        string
	allowed     string
	key         string // in the configuration file; empty if there is none
	choices     []string
	repeatable  bool
}

// flagValue keeps what a flag was given as it is. It is read later, with all the
// others, so that all mistakes can be reported at once.
type flagValue struct {
	option option
	values []string
}

// String, Set and Type make it a value of cobra's flags.
func (f *flagValue) String() string { return f.option.def }

func (f *flagValue) Set(text string) error {
	if !f.option.repeatable {
		f.values = nil // the last one counts
	}
	f.values = append(f.values, text)
	return nil
}

func (f *flagValue) Type() string {
	if f.option.arg == "" {
		return "bool" // which cobra takes for a switch
	}
	return f.option.arg
}

// last returns the value in force.
func (f *flagValue) last() string {
	if len(f.values) == 0 {
		return f.option.def
	}
	return f.values[len(f.values)-1]
}

// flagValues are the flags of one command, by name.
type flagValues map[string]*flagValue

func addFlags(cmd *cobra.Command, options []option) flagValues {
	cmd.Flags().SortFlags = false // the order of the table is the order to read
	values := flagValues{}
	for _, o := range options {
		value := &flagValue{option: o}
		flag := cmd.Flags().VarPF(value, o.name, o.short, o.usage())
		if o.arg == "" {
			flag.NoOptDefVal = "true"
			flag.DefValue = "" // --help need not say that a switch is off
		}
		values[o.name] = value
	}
	return values
}

func (o option) usage() string {
	if o.repeatable {
		return o.help + " (repeatable)"
	}
	return o.help
}

// settingOptions makes flags of the table of settings.
func settingOptions() []option {
	var options []option
	for _, s := range config.Settings() {
		options = append(options, option{
			name: s.Name, short: s.Short, arg: s.Arg, help: s.Help, more: s.More, def: s.Default(),
			unit: s.Unit, allowed: s.Allowed, key: s.Key, choices: s.Choices, repeatable: s.Kind == config.List,
		})
	}
	return options
}

// flagNames returns the long flags of a command. They are read from its help: it
// is the one list of them that needs no further module.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	for field := range strings.FieldsSeq(cmd.Flags().FlagUsages()) {
		if name, ok := strings.CutPrefix(field, "--"); ok {
			names = append(names, name)
		}
	}
	return names
}
