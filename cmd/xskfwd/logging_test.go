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

	"github.com/google/go-cmp/cmp"

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
	log := func(message string, after time.Duration) {
		record := slog.NewRecord(time.Unix(1000, 0).Add(after), slog.LevelInfo, message, 0)
		if err := limit.WithAttrs([]slog.Attr{slog.String("port", "eth0")}).Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		log("flood", time.Duration(i)*time.Microsecond)
	}
	log("other", logWindow-1)
	log("other", logWindow)
	log("flood", logWindow)

	var got []string
	for line := range strings.Lines(out.String()) {
		_, line, _ = strings.Cut(line, " level=") // without the time
		got = append(got, line)
	}
	flood, other := "INFO msg=flood port=eth0\n", "INFO msg=other port=eth0\n"
	want := []string{
		flood, flood, flood, flood, flood, other,
		fmt.Sprintf("WARN msg=\"lines left out of the log\" cause=flood lines=%d\n", 1000-logBurst), other, flood,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLogLimitForgetsCauses(t *testing.T) {
	var out output
	limit := newLogLimit(slog.NewTextHandler(&out, nil))
	for i := range 100 {
		at := time.Unix(int64(i), 0)
		if err := limit.Handle(t.Context(), slog.NewRecord(at, slog.LevelInfo, fmt.Sprint("cause ", i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(limit.state.causes); n != 1 {
		t.Errorf("%d causes are kept, want the last one", n)
	}
}
