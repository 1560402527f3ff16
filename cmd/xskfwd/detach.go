// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/xskfwd/xskfwd/internal/config"
)

const detachText = `Remove what a daemon left on the ports: the XDP programs that go on joining each
wire in the kernel after a kill, a crash, or a stop with --on-exit keep. The ports
of a daemon that is running are left alone, and that is an error. What is in other
network namespaces is left alone too.`

func (e *env) detachCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "detach",
		Short: "remove what a dead daemon left on the ports",
		Long:  detachText,
		Args:  noArguments("; detach works on all ports of the network namespace"),
		RunE: func(*cobra.Command, []string) error {
			log := e.logger(config.LogInfo, config.LogText)
			ctx, stop := e.untilSignal(log)
			defer stop()
			return failed(e.needsRoot(e.detach(ctx, log, e.stdout)))
		},
	}
}
