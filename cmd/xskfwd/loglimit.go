// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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
)

// logLimit is a handler that keeps a trouble which lasts from flooding the log.
// A cause is a message: what varies belongs into the attributes. Lines that are
// left out are counted, and the first line of any cause after the window says how
// many there were.
type logLimit struct {
	slog.Handler
	state *logState
}

// logState is shared by all handlers that come of one.
type logState struct {
	next   slog.Handler // has no attributes of any logger
	mu     sync.Mutex
	causes map[string]*logCause
}

// logCause is the current window of one cause.
type logCause struct {
	since   time.Time
	lines   int
	leftOut int
}

func newLogLimit(next slog.Handler) *logLimit {
	return &logLimit{next, &logState{next: next, causes: map[string]*logCause{}}}
}

// Handle implements slog.Handler.
func (l *logLimit) Handle(ctx context.Context, r slog.Record) error {
	write, err := l.state.admit(ctx, r.Message, r.Time)
	if write {
		err = errors.Join(err, l.Handler.Handle(ctx, r))
	}
	return err
}

// WithAttrs implements slog.Handler.
func (l *logLimit) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logLimit{l.Handler.WithAttrs(attrs), l.state}
}

// WithGroup implements slog.Handler.
func (l *logLimit) WithGroup(name string) slog.Handler {
	return &logLimit{l.Handler.WithGroup(name), l.state}
}

// admit says whether a line is written.
func (s *logState) admit(ctx context.Context, message string, now time.Time) (write bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.closeWindows(ctx, now)
	cause := s.causes[message]
	if cause == nil {
		cause = &logCause{since: now}
		s.causes[message] = cause
	}
	if cause.lines == logBurst {
		cause.leftOut++
		return false, err
	}
	cause.lines++
	return true, err
}

// closeWindows reports what was left out of windows that are over. It also keeps
// the map small: it holds the causes of one window.
func (s *logState) closeWindows(ctx context.Context, now time.Time) error {
	var errs []error
	for message, cause := range s.causes {
		if now.Sub(cause.since) < logWindow {
			continue
		}
		delete(s.causes, message)
		if cause.leftOut > 0 {
			r := slog.NewRecord(now, slog.LevelWarn, "lines left out of the log", 0)
			r.AddAttrs(slog.String("cause", message), slog.Int("lines", cause.leftOut))
			errs = append(errs, s.next.Handle(ctx, r))
		}
	}
	return errors.Join(errs...)
}
