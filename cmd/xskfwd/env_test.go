// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/xskfwd/xskfwd/internal/config"
	"github.com/xskfwd/xskfwd/internal/demo"
)

// output is a buffer that a signal handler may write to at any time.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// world is an env whose outputs can be read. Its seams do nothing and succeed.
type world struct {
	*env
	out, err output
}

func newWorld(t *testing.T) *world {
	w := &world{env: system()}
	w.stdout, w.stderr = &w.out, &w.err
	w.getenv = func(string) string { return "" }
	w.exit = func(code int) { t.Errorf("exit(%d)", code) }
	w.euid = func() int { return 0 }
	w.kernel = func() string { return "6.18.0" }
	w.buildInfo = func() (*debug.BuildInfo, bool) {
		return &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.modified", Value: "true"},
		}}, true
	}
	w.devices = func() ([]string, error) { return []string{"eth0", "eth1", "wan"}, nil }
	w.run = func(context.Context, *config.Config, *slog.Logger) error { return nil }
	w.detach = func(context.Context, *slog.Logger, io.Writer) error { return nil }
	w.demo = func(context.Context, demo.Options) error { return nil }
	return w
}
