// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xskfwd/xskfwd/internal/config"
)

func TestLoggerWritesTextOrJSONFromTheLevelOn(t *testing.T) {
	w := newWorld(t)
	log := w.logger(config.LogWarn, config.LogText)
	log.Info("not this")
	log.Warn("but this", "port", "eth0")
	if got := w.err.String(); !strings.HasPrefix(got, "time=") || !strings.HasSuffix(got, "level=WARN msg=\"but this\" port=eth0\n") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("text: %q", got)
	}

	w = newWorld(t)
	w.logger(config.LogDebug, config.LogJSON).Debug("this too", "queue", 3)
	var line struct {
		Msg   string
		Queue int
	}
	if err := json.Unmarshal([]byte(w.err.String()), &line); err != nil || line.Msg != "this too" || line.Queue != 3 {
		t.Errorf("json: %v, %q", err, w.err.String())
	}
}

func TestLoggerLeavesTimestampsToTheJournal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	for stream, want := range map[string]string{
		fmt.Sprintf("%d:%d", stat.Dev, stat.Ino):   "level=INFO ",
		fmt.Sprintf("%d:%d", stat.Dev, stat.Ino+1): "time=",
		"": "time=",
	} {
		w := newWorld(t)
		w.stderr = file
		w.getenv = func(string) string { return stream }
		if err := file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := file.Seek(0, 0); err != nil {
			t.Fatal(err)
		}
		w.logger(config.LogInfo, config.LogText).Info("x")
		text, err := os.ReadFile(file.Name())
		if err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("JOURNAL_STREAM=%q: %v, %q, want it to start with %q", stream, err, text, want)
		}
	}
}

func TestLogLimitLeavesOutWhatRepeats(t *testing.T) {
	var out output
	limit := newLogLimit(slog.NewTextHandler(&out, nil))
	start := time.Unix(1000, 0)
	log := func(message string, after time.Duration) {
		record := slog.NewRecord(start.Add(after), slog.LevelWarn, message, 0)
		if err := limit.WithAttrs([]slog.Attr{slog.String("port", "eth0")}).Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		log("flood", time.Duration(i)*time.Microsecond)
	}
	log("other", 0)
	log("flood", logWindow)
	log("flood", logWindow)
	got := out.String()
	if n := strings.Count(got, "msg=flood"); n != logBurst+2 {
		t.Errorf("%d lines of the flood, want %d", n, logBurst+2)
	}
	if !strings.Contains(got, "msg=other port=eth0\n") {
		t.Error("the line of another cause is missing")
	}
	if n := strings.Count(got, fmt.Sprintf("suppressed=%d\n", 1000-logBurst)); n != 1 || strings.Count(got, "suppressed=") != 1 {
		t.Errorf("what was left out is not counted once:\n%s", got)
	}
}

func TestLogLimitForgetsCausesInTheEnd(t *testing.T) {
	var out output
	limit := newLogLimit(slog.NewTextHandler(&out, nil))
	for i := range 3 * logCauses {
		_ = limit.Handle(t.Context(), slog.NewRecord(time.Unix(1, 0), slog.LevelInfo, fmt.Sprint("cause ", i), 0))
	}
	if n := len(limit.state.causes); n > logCauses {
		t.Errorf("%d causes are kept, want at most %d", n, logCauses)
	}
}
