// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"time"
)

// XDPMode says how the redirect program is attached to a port.
type XDPMode string

// The XDP modes. Auto is native, or generic where the driver refuses native.
const (
	XDPAuto    XDPMode = "auto"
	XDPNative  XDPMode = "native"
	XDPGeneric XDPMode = "generic"
)

// Zerocopy says whether sockets are bound in zero-copy mode.
type Zerocopy string

// The zero-copy policies. Prefer falls back to copy mode.
const (
	ZerocopyPrefer  Zerocopy = "prefer"
	ZerocopyRequire Zerocopy = "require"
	ZerocopyNever   Zerocopy = "never"
)

// PollMode says what a worker does when its queues are idle.
type PollMode string

// The poll modes: sleep at once, poll on for a short while, never sleep.
const (
	PollInterrupt PollMode = "interrupt"
	PollAdaptive  PollMode = "adaptive"
	PollBusy      PollMode = "busy"
)

// BulkFlush says what a return queue does when the next frame is of another
// page pool.
type BulkFlush string

// The flush rules: sort by pool when the queue is flushed, or flush at each
// change of pool.
const (
	BulkPartition BulkFlush = "partition"
	BulkChange    BulkFlush = "change"
)

// TimerArm says when the TX timer is armed.
type TimerArm string

// The arm rules: only when no poll is due anyway, or on every transmit.
const (
	ArmIdle   TimerArm = "idle"
	ArmAlways TimerArm = "always"
)

// OnExit says what a clean stop leaves on the ports.
type OnExit string

// What a clean stop leaves: nothing, or the program that joins the wire in the
// kernel.
const (
	ExitDetach OnExit = "detach"
	ExitKeep   OnExit = "keep"
)

// LogLevel is the least level that is logged.
type LogLevel string

// The log levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// LogFormat is the form of a log line.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Config is one complete set of settings. It does not change once it is
// validated.
type Config struct {
	Ports []Port
	Wires []Wire

	XDP      XDPMode
	Zerocopy Zerocopy
	Replace  bool // whether an XDP program of somebody else may be taken off a port
	OnExit   OnExit

	Workers int   // 0 = see WorkerCount
	CPUs    []int // CPUs[i] runs worker i; empty = the daemon chooses
	Poll    PollMode

	UmemFrames     int // 0 = see Frames
	FrameSize      int // bytes
	RxRing         int // descriptors, as are the next three
	TxRing         int
	FillRing       int
	CompletionRing int

	BulkSize   int // frames; 1 = off
	BulkFlush  BulkFlush
	TxTimer    time.Duration // 0 = off
	TxTimerArm TimerArm
	TxFrames   int // unreaped frames

	Metrics   string // host:port; "" = off
	LogLevel  LogLevel
	LogFormat LogFormat
}

// Defaults returns the settings of a daemon that was told nothing. It has no
// ports, so it does not validate.
func Defaults() *Config {
	return &Config{
		XDP:            XDPAuto,
		Zerocopy:       ZerocopyPrefer,
		OnExit:         ExitDetach,
		Poll:           PollAdaptive,
		FrameSize:      2048,
		RxRing:         2048,
		TxRing:         2048,
		FillRing:       2048,
		CompletionRing: 2048,
		BulkSize:       MaxBulkSize,
		BulkFlush:      BulkPartition,
		TxTimer:        5 * time.Millisecond,
		TxTimerArm:     ArmIdle,
		TxFrames:       25,
		Metrics:        "127.0.0.1:9750",
		LogLevel:       LogInfo,
		LogFormat:      LogText,
	}
}

// Frames returns the number of UMEM frames for this many queues of all ports
// together: what was asked for or, if nothing was, as many as can be with the
// kernel at once: a full fill ring and a full TX ring for each queue.
func (c *Config) Frames(queues int) (int, error) {
	least := queues * MinQueueFrames
	frames := c.UmemFrames
	if frames == 0 {
		frames = queues * (c.FillRing + c.TxRing)
	}
	switch {
	case frames > MaxUmemFrames:
		return 0, fmt.Errorf("the fill and TX rings of %d queues hold %d frames, but a UMEM has at most %d: use smaller rings or fewer queues",
			queues, frames, MaxUmemFrames)
	case frames < least:
		return 0, fmt.Errorf("too few for %d queues; allowed: 0 (as many as the fill and TX rings hold), or %d to %d",
			queues, least, MaxUmemFrames)
	}
	return frames, nil
}

// WorkerCount returns the number of workers when the busiest port has this many
// queues and the process may run on this many CPUs. More workers than queues are
// allowed if they were asked for: they share queues.
func (c *Config) WorkerCount(queues, cpus int) int {
	if c.Workers > 0 {
		return c.Workers
	}
	if len(c.CPUs) > 0 {
		cpus = len(c.CPUs)
	}
	return max(1, min(queues, cpus))
}
