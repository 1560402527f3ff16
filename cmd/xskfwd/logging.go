// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/xskfwd/xskfwd/internal/config"
)

// logger writes to standard error. The journal has its own timestamps.
func (e *env) logger(level config.LogLevel, format config.LogFormat) *slog.Logger {
	o := &slog.HandlerOptions{Level: slogLevel(level)}
	if isJournal(e.stderr, e.getenv("JOURNAL_STREAM")) {
		o.ReplaceAttr = withoutTime
	}
	var lines slog.Handler = slog.NewTextHandler(e.stderr, o)
	if format == config.LogJSON {
		lines = slog.NewJSONHandler(e.stderr, o)
	}
	return slog.New(newLogLimit(lines))
}

func slogLevel(level config.LogLevel) slog.Level {
	switch level {
	case config.LogDebug:
		return slog.LevelDebug
	case config.LogWarn:
		return slog.LevelWarn
	case config.LogError:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// isJournal tells whether w is the stream that systemd connected to the journal,
// by the device and inode that JOURNAL_STREAM names. The variable alone says
// nothing: it is inherited by programs whose output goes elsewhere.
func isJournal(w io.Writer, stream string) bool {
	file, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}
