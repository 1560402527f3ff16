// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab"
	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// Each row is a start that is refused, on ports of two queues and one, and what
// the man page says of its exit code.
func TestIntegrationExitCodeIsThatOfTheManPage(t *testing.T) {
	labtest.Privileged(t)
	router, peer := labtest.NS(t), labtest.NS(t)
	labtest.Veth(t, router, "r0", peer, "a0", netlab.VethOptions{Queues: 2})
	labtest.Veth(t, router, "r1", peer, "b0", netlab.VethOptions{})
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"-p r0 -p r2 --wire r0=r2", exitFailure, "a port or queue that is not there"},
		{"-p r0:2 -p r1 --wire r0=r1", exitFailure, "a port or queue that is not there"},
		{"-p r0 -p r1 --wire r0=r1 --cpus 8191", exitFailure, "a cpu the process may not run on"},
		{"-p r0 -p r1 --wire r0=r1 --workers 4", exitFailure, "more workers than queues"},
		{"-p r0 -p r1 --wire r0=r1 --umem-frames 64", exitFailure, "--umem-frames too small for the queues that were found"},
		{"-p r0:0 -p r1:0 --wire r0=r1 --umem-frames 63", exitUsage, "The command line"},
		{"-p r0 -p r1 --wire r0=r1 --rx-ring 100", exitUsage, "The command line"},
		{"--config /nonexistent", exitUsage, "the configuration file"},
	} {
		t.Run(test.args, func(t *testing.T) {
			p := labtest.StartProcess(t, router, netlab.Command{
				Path: os.Args[0], Args: append([]string{"run", "--metrics="}, strings.Fields(test.args)...),
				Env: append(os.Environ(), programEnv+"=1"),
			})
			var exit *exec.ExitError
			if err := p.Wait(labtest.Context(t)); !errors.As(err, &exit) || exit.ExitCode() != test.code {
				t.Errorf("%v, want exit status %d; it wrote\n%s", err, test.code, p.Log())
			}
			if text := manExit[test.code].text; !strings.Contains(text, test.says) {
				t.Errorf("the man page says of %d: %s", test.code, text)
			}
		})
	}
}
