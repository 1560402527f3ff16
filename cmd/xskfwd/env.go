// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/daemon"
	"github.com/xskfwd/xskfwd/internal/demo"
)

// env is all of the outside world that the commands touch.
type env struct {
	stdout, stderr io.Writer
	getenv         func(string) string
	exit           func(code int) // of a process that cannot wait; does not return
	now            func() time.Time

	euid       func() int
	buildInfo  func() (*debug.BuildInfo, bool)
	kernel     func() string
	isTerminal func(io.Writer) bool
	devices    func() ([]string, error) // network devices, for completion

	// run forwards until ctx is done. nil means a clean stop.
	run func(ctx context.Context, cfg *config.Config, log *slog.Logger) error
	// detach removes what an earlier daemon left, and writes to out what it was.
	detach func(ctx context.Context, log *slog.Logger, out io.Writer) error
	// demo returns nil only if every frame that was sent has arrived.
	demo func(ctx context.Context, o demo.Options) error
}

// system returns the real world.
func system() *env {
	return &env{
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		getenv:     os.Getenv,
		exit:       os.Exit,
		now:        time.Now,
		euid:       os.Geteuid,
		buildInfo:  debug.ReadBuildInfo,
		kernel:     kernelRelease,
		isTerminal: isTerminal,
		devices:    devices,
		run:        daemon.Run,
		detach:     daemon.Detach,
		demo:       demo.Run,
	}
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// devices leaves out loopback, on which nobody wants to forward.
func devices() ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, device := range all {
		if device.Flags&net.FlagLoopback == 0 {
			names = append(names, device.Name)
		}
	}
	return names, nil
}
