// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// logBurst lines of one cause are written in a logWindow. Fewer would hide
	// that several ports have the same trouble; with ten or more a second a
	// trouble that lasts fills a disk.
	logBurst  = 5
	logWindow = time.Second

	// logCauses bounds the memory of the limit. Causes are the constant messages
	// of the program, so there are fewer; when there are not, all start afresh.
	logCauses = 1000
)

// logLimit is a handler that keeps a trouble which lasts from flooding the log.
// A cause is a message: what varies belongs into the attributes. Lines that were
// left out are counted, and the next line of the cause says how many.
type logLimit struct {
	slog.Handler
	state *logState
}

type logState struct {
	mu     sync.Mutex
	causes map[string]*logCause
}

type logCause struct {
	since      time.Time // start of the window
	lines      int       // written in this window
	suppressed int       // since the last line that was written
}

func newLogLimit(next slog.Handler) *logLimit {
	return &logLimit{next, &logState{causes: map[string]*logCause{}}}
}

// Handle implements slog.Handler.
func (l *logLimit) Handle(ctx context.Context, r slog.Record) error {
	suppressed, write := l.state.admit(r.Message, r.Time)
	if !write {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. The limit is shared by all handlers that
// come of one.
func (l *logLimit) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logLimit{l.Handler.WithAttrs(attrs), l.state}
}

// WithGroup implements slog.Handler.
func (l *logLimit) WithGroup(name string) slog.Handler {
	return &logLimit{l.Handler.WithGroup(name), l.state}
}

// admit says whether a line is written, and how many before it were not.
func (s *logState) admit(message string, now time.Time) (suppressed int, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cause := s.causes[message]
	if cause == nil {
		if len(s.causes) >= logCauses {
			clear(s.causes)
		}
		cause = &logCause{since: now}
		s.causes[message] = cause
	}
	if now.Sub(cause.since) >= logWindow {
		cause.since, cause.lines = now, 0
	}
	if cause.lines >= logBurst {
		cause.suppressed++
		return 0, false
	}
	suppressed, cause.suppressed = cause.suppressed, 0
	cause.lines++
	return suppressed, true
}
