// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/xskfwd/xskfwd/internal/config"
)

const runText = `Forward packets until SIGTERM or SIGINT.

A wire joins two ports: whatever one of them receives the other one sends. The
host itself can no longer be reached through a port that is in a wire.`

const runExample = `  xskfwd run -p eth0 -p eth1 --wire eth0=eth1
  xskfwd run -p eth0:0-3 -p eth1:0-3 --wire eth0=eth1 --poll busy --cpus 4-7
  xskfwd run --config /etc/xskfwd/xskfwd.toml --log-level debug`

func runOptions() []option {
	return append(settingOptions(), option{
		name: "config", arg: "FILE",
		help: "read settings from a TOML file; flags win over it",
		more: "A list given by flags replaces the whole list of the file.",
	})
}

func (e *env) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "forward packets between ports",
		Long:    runText,
		Example: runExample,
		Args:    noArguments("; ports are given by --port, wires by --wire"),
	}
	flags := addFlags(cmd, runOptions())
	e.completeFlags(cmd, flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		file := flags["config"]
		if file.values != nil && file.last() == "" {
			return errors.New(`--config "": names no file; leave the flag out to read none`)
		}
		cfg, err := config.Load(file.last(), flags.overrides()...)
		if err != nil {
			return err
		}
		log := e.logger(cfg.LogLevel, cfg.LogFormat)
		ctx, stop := e.untilSignal(log)
		defer stop()
		return failed(e.run(ctx, cfg, log))
	}
	return cmd
}

// overrides returns the settings that were given, in the order of the table.
func (f flagValues) overrides() []config.Override {
	var given []config.Override
	for _, s := range config.Settings() {
		if values := f[s.Name].values; values != nil {
			given = append(given, config.Override{Name: s.Name, Values: values})
		}
	}
	return given
}
