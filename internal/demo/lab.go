// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/xskfwd/xskfwd/internal/netlab"
)

// metricsAddr is inside the router's namespace, so it cannot be taken.
const metricsAddr = "127.0.0.1:9750"

// lab is two hosts with a router between them.
type lab struct {
	a, router, b *netlab.NS
	daemon       *netlab.Process
}

// openLab makes the namespaces; nothing is left if it fails.
func openLab() (_ *lab, err error) {
	l := &lab{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	for _, n := range []struct {
		ns   **netlab.NS
		name string
	}{{&l.a, "demo-a"}, {&l.router, "demo-router"}, {&l.b, "demo-b"}} {
		if *n.ns, err = netlab.NewNS(fmt.Sprintf("xskfwd-%s-%d", n.name, os.Getpid())); err != nil {
			return nil, err
		}
	}
	// The far ends run NAPI (GRO), so that they take redirected frames too.
	opts := netlab.VethOptions{B: netlab.End{GRO: true}}
	if err := netlab.Veth(l.router, "left", l.a, "host-a", opts); err != nil {
		return nil, err
	}
	if err := netlab.Veth(l.router, "right", l.b, "host-b", opts); err != nil {
		return nil, err
	}
	return l, l.router.SetUp("lo") // for the metrics
}

func (l *lab) arguments() []string {
	return []string{"run", "-p", "left", "-p", "right", "--wire", "left=right", "--metrics", metricsAddr}
}

func (l *lab) commandLine() string { return strings.Join(l.arguments(), " ") }

// startDaemon starts this very program as the daemon and waits until it forwards.
func (l *lab) startDaemon(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if l.daemon, err = l.router.Start(netlab.Command{Path: self, Args: l.arguments()}); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = l.daemon.WaitLog(wait, "msg=forwarding")
	if ctx.Err() != nil {
		return errors.New("interrupted before the daemon forwarded")
	}
	if err != nil {
		return fmt.Errorf("the daemon did not start: %w\n%s", err, l.daemon.Log())
	}
	return nil
}

// stopDaemon ends the daemon as a service manager would. It must leave with 0:
// then its census was exact.
func (l *lab) stopDaemon() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := l.daemon.Stop(ctx); err != nil {
		return fmt.Errorf("the daemon did not stop cleanly: %w\n%s", err, l.daemon.Log())
	}
	return nil
}

// close removes everything, whatever state it is in.
func (l *lab) close() error {
	if l.daemon != nil {
		select {
		case <-l.daemon.Done():
		default:
			_ = l.stopDaemon() // a failure before this is the one to report
		}
	}
	var errs []error
	for _, ns := range []*netlab.NS{l.a, l.router, l.b} {
		if ns != nil {
			errs = append(errs, ns.Close())
		}
	}
	return errors.Join(errs...)
}
