// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what values of a setting look like.
type Kind uint8

// The kinds. In a file, text, choices and durations are strings, a list is an
// array of strings.
const (
	Text Kind = iota
	Choice
	Number
	Switch
	Duration
	List
)

// Setting is one row of the table of settings.
type Setting struct {
	Name    string // of the flag, without dashes
	Key     string // in the file
	Short   string // one-letter flag; may be empty
	Kind    Kind
	Arg     string // stands for the value in help and man pages
	Help    string // one line, for --help
	More    string // what else there is to say, for the file and the man page; may be empty
	Unit    string // of a number; may be empty
	Allowed string // ends an error message
	Choices []string
	Example string // in the sample where the default says nothing; as in the file

	// get returns the values as they would be written; one, but for a list.
	get func(*Config) []string
	// clear empties a list before the first add; nil for the other kinds.
	clear func(*Config)
	// add reads one value. It checks no more than it needs to read it.
	add func(*Config, string) error
	// check judges the i-th value, wherever it came from.
	check func(c *Config, i int) error
}

// Default returns the default as it is written on a command line.
func (s *Setting) Default() string { return strings.Join(s.get(Defaults()), " ") }

// Settings returns the table, in the order in which people should read it.
func Settings() []*Setting {
	return []*Setting{
		list(&Setting{
			Name: "port", Key: "ports", Short: "p", Arg: "NAME[:QUEUES]",
			Help:    "port to forward on, and its queues, such as eth0:0-3,6",
			More:    "Without queues, all the port has are used. What arrives on another queue is passed through the wire by the kernel.",
			Allowed: fmt.Sprintf("a device name of 1 to %d bytes without space, '/', ':' or '=', then nothing or a colon and queues from 0 to %d such as 0-3,6", MaxPortName, MaxQueues-1),
			Example: `["eth0:0-3", "eth1:0-3"]`,
		}, func(c *Config) *[]Port { return &c.Ports }, ParsePort, Port.check),
		list(&Setting{
			Name: "wire", Key: "wires", Arg: "A=B",
			Help:    "join two ports: what one receives the other sends",
			More:    "Each port is in exactly one wire.",
			Allowed: "the names of two configured ports with an equals sign between them",
			Example: `["eth0=eth1"]`,
		}, func(c *Config) *[]Wire { return &c.Wires }, ParseWire, Wire.check),

		choice(&Setting{
			Name: "xdp", Key: "xdp",
			Help: "how the XDP program is attached",
			More: "Native runs in the driver, generic on any device and slower. With auto a port is native, or generic where its driver refuses native.",
		}, func(c *Config) *XDPMode { return &c.XDP }, XDPAuto, XDPNative, XDPGeneric),
		choice(&Setting{
			Name: "zerocopy", Key: "zerocopy",
			Help: "whether the NIC works on the frames without a copy",
			More: "With prefer a queue is in copy mode where its driver has no zero-copy; with require that is an error.",
		}, func(c *Config) *Zerocopy { return &c.Zerocopy }, ZerocopyPrefer, ZerocopyRequire, ZerocopyNever),
		toggle(&Setting{
			Name: "replace", Key: "replace",
			Help: "take an XDP program of somebody else off a port",
			More: "Otherwise a port that has one is refused.",
		}, func(c *Config) *bool { return &c.Replace }),
		choice(&Setting{
			Name: "on-exit", Key: "on-exit",
			Help: "what a clean stop leaves on the ports",
			More: "Detach leaves nothing. Keep leaves the XDP program, which goes on joining each wire in the kernel until xskfwd runs again or `xskfwd detach` removes it.",
		}, func(c *Config) *OnExit { return &c.OnExit }, ExitDetach, ExitKeep),

		number(&Setting{
			Name: "workers", Key: "workers",
			Help: "worker threads; 0 = as many as the busiest port has queues",
			More: "0 never means more than there are CPUs to run on. If there are more workers than queues, they share queues.",
		}, 0, MaxCPUs, func(c *Config) *int { return &c.Workers }),
		cpuList(&Setting{
			Name: "cpus", Key: "cpus", Arg: "LIST",
			Help:    "CPUs for the workers in turn, such as 2-5; empty = any",
			More:    "The first worker is pinned to the first CPU of the list, and so on.",
			Allowed: fmt.Sprintf("numbers and ranges from 0 to %d such as 2-5,8", MaxCPUs-1),
		}),
		choice(&Setting{
			Name: "poll", Key: "poll",
			Help: "what a worker does when there is nothing to do",
			More: "Interrupt sleeps at once. Adaptive polls on for a short while, then sleeps. Busy never sleeps and keeps each worker's CPU at 100%.",
		}, func(c *Config) *PollMode { return &c.Poll }, PollInterrupt, PollAdaptive, PollBusy),

		number(&Setting{
			Name: "umem-frames", Key: "umem-frames", Unit: "frames",
			Help: "frames of packet memory; 0 = as many as the fill and TX rings hold",
			More: fmt.Sprintf("At least %d for each queue. With fewer than the rings hold, half of each queue's share is posted for receiving.", MinQueueFrames),
		}, 0, MaxUmemFrames, func(c *Config) *int { return &c.UmemFrames }),
		frameSize(&Setting{
			Name: "frame-size", Key: "frame-size", Unit: "bytes",
			Help: "size of a frame, in bytes",
			More: "256 bytes of it are headroom: a packet of up to 1792 bytes fits into 2048, of up to 3840 into 4096. Some drivers need more room. Longer packets are dropped, and counted.",
		}),
		ring(&Setting{
			Name: "rx-ring", Key: "rx-ring",
			Help: "size of each RX ring, in descriptors",
		}, func(c *Config) *int { return &c.RxRing }),
		ring(&Setting{
			Name: "tx-ring", Key: "tx-ring",
			Help: "size of each TX ring, in descriptors",
		}, func(c *Config) *int { return &c.TxRing }),
		ring(&Setting{
			Name: "fill-ring", Key: "fill-ring",
			Help: "size of each fill ring, in descriptors",
			More: "This is how many frames wait for packets on a queue.",
		}, func(c *Config) *int { return &c.FillRing }),
		ring(&Setting{
			Name: "completion-ring", Key: "completion-ring",
			Help: "size of each completion ring, in descriptors",
		}, func(c *Config) *int { return &c.CompletionRing }),

		number(&Setting{
			Name: "bulk-size", Key: "bulk-size", Unit: "frames",
			Help: "sent frames returned to their pool at once; 1 = off",
		}, 1, MaxBulkSize, func(c *Config) *int { return &c.BulkSize }),
		choice(&Setting{
			Name: "bulk-flush", Key: "bulk-flush",
			Help: "what a bulk does when frames of several pools mix",
			More: "Partition takes them all and sorts them by pool when the bulk is flushed. Change flushes whenever the pool changes.",
		}, func(c *Config) *BulkFlush { return &c.BulkFlush }, BulkPartition, BulkChange),
		txTimer(&Setting{
			Name: "tx-timer", Key: "tx-timer", Arg: "TIME",
			Help:    "how long sent frames wait to be taken back; 0 = no timer",
			Allowed: fmt.Sprintf("a time with a unit from 0 to %v, such as 5ms or 250us", MaxTxTimer),
		}),
		choice(&Setting{
			Name: "tx-timer-arm", Key: "tx-timer-arm",
			Help: "when the TX timer is armed",
			More: "Idle arms it only if no poll is due that would take the frames back anyway. Always arms it on every transmit; it is there for comparison.",
		}, func(c *Config) *TimerArm { return &c.TxTimerArm }, ArmIdle, ArmAlways),
		number(&Setting{
			Name: "tx-frames", Key: "tx-frames", Unit: "frames",
			Help: "sent frames that are taken back without waiting for the timer",
			More: "No more than the TX ring holds.",
		}, 1, MaxRing, func(c *Config) *int { return &c.TxFrames }),

		metrics(&Setting{
			Name: "metrics", Key: "metrics", Arg: "ADDRESS",
			Help:    "where /metrics is served; empty = nowhere",
			Allowed: "HOST:PORT with an IP address, localhost or nothing for HOST; or empty",
		}),
		choice(&Setting{
			Name: "log-level", Key: "log-level",
			Help: "least level that is logged",
		}, func(c *Config) *LogLevel { return &c.LogLevel }, LogDebug, LogInfo, LogWarn, LogError),
		choice(&Setting{
			Name: "log-format", Key: "log-format",
			Help: "form of a log line",
		}, func(c *Config) *LogFormat { return &c.LogFormat }, LogText, LogJSON),
	}
}

func list[T fmt.Stringer](s *Setting, field func(*Config) *[]T, parse func(string) (T, error), check func(T) error) *Setting {
	s.Kind = List
	s.get = func(c *Config) []string {
		var texts []string
		for _, value := range *field(c) {
			texts = append(texts, value.String())
		}
		return texts
	}
	s.clear = func(c *Config) { *field(c) = nil }
	s.add = func(c *Config, text string) error {
		value, err := parse(text)
		if err == nil {
			*field(c) = append(*field(c), value)
		}
		return err
	}
	s.check = func(c *Config, i int) error { return check((*field(c))[i]) }
	return s
}

func choice[T ~string](s *Setting, field func(*Config) *T, choices ...T) *Setting {
	s.Kind = Choice
	for _, value := range choices {
		s.Choices = append(s.Choices, string(value))
	}
	s.Arg = strings.Join(s.Choices, "|")
	s.Allowed = strings.Join(s.Choices, ", ")
	s.get = func(c *Config) []string { return []string{string(*field(c))} }
	s.add = func(c *Config, text string) error {
		*field(c) = T(text)
		return nil
	}
	s.check = func(c *Config, _ int) error {
		if slices.Contains(choices, *field(c)) {
			return nil
		}
		if near := Nearest(string(*field(c)), s.Choices); near != "" {
			return fmt.Errorf("unknown; did you mean %s?", near)
		}
		return errors.New("unknown")
	}
	return s
}

func toggle(s *Setting, field func(*Config) *bool) *Setting {
	s.Kind = Switch
	s.Choices = []string{"true", "false"}
	s.Allowed = "true, false"
	s.get = func(c *Config) []string { return []string{strconv.FormatBool(*field(c))} }
	s.add = func(c *Config, text string) error {
		if !slices.Contains(s.Choices, text) {
			return errors.New("neither true nor false")
		}
		*field(c) = text == "true"
		return nil
	}
	s.check = func(*Config, int) error { return nil }
	return s
}

func number(s *Setting, least, most int, field func(*Config) *int) *Setting {
	s.Kind = Number
	if s.Allowed == "" {
		s.Arg = "N"
		s.Allowed = fmt.Sprintf("%d to %d", least, most)
	}
	s.get = func(c *Config) []string { return []string{strconv.Itoa(*field(c))} }
	s.add = func(c *Config, text string) error {
		value, err := strconv.Atoi(text)
		switch {
		case errors.Is(err, strconv.ErrRange) && strings.HasPrefix(text, "-"):
			return errors.New("too small")
		case errors.Is(err, strconv.ErrRange):
			return errors.New("too large")
		case err != nil:
			return errors.New("not a whole number")
		}
		*field(c) = value
		return nil
	}
	s.check = func(c *Config, _ int) error {
		switch value := *field(c); {
		case value < least:
			return errors.New("too small")
		case value > most:
			return errors.New("too large")
		}
		return nil
	}
	return s
}

// narrow adds a rule to those of a setting.
func narrow(s *Setting, rule func(c *Config) error) *Setting {
	check := s.check
	s.check = func(c *Config, i int) error {
		if err := check(c, i); err != nil {
			return err
		}
		return rule(c)
	}
	return s
}

func ring(s *Setting, field func(*Config) *int) *Setting {
	s.Unit = "descriptors"
	s.Arg = "N"
	s.Allowed = fmt.Sprintf("a power of two from %d to %d", MinRing, MaxRing)
	return narrow(number(s, MinRing, MaxRing, field), func(c *Config) error {
		if n := *field(c); n&(n-1) != 0 {
			return errors.New("not a power of two")
		}
		return nil
	})
}

func frameSize(s *Setting) *Setting {
	s.Choices = []string{"2048", "4096"}
	s.Arg = strings.Join(s.Choices, "|")
	s.Allowed = strings.Join(s.Choices, ", ")
	return narrow(number(s, 2048, 4096, func(c *Config) *int { return &c.FrameSize }), func(c *Config) error {
		if c.FrameSize != 2048 && c.FrameSize != 4096 {
			return errors.New("not one of the sizes")
		}
		return nil
	})
}

func cpuList(s *Setting) *Setting {
	s.Kind = Text
	s.get = func(c *Config) []string { return []string{formatNumbers(c.CPUs)} }
	s.add = func(c *Config, text string) error {
		c.CPUs = nil
		if text == "" {
			return nil
		}
		numbers, err := parseNumbers(text, MaxCPUs)
		c.CPUs = numbers
		return err
	}
	s.check = func(c *Config, _ int) error { return checkNumbers(c.CPUs, MaxCPUs) }
	return s
}

func txTimer(s *Setting) *Setting {
	s.Kind = Duration
	s.get = func(c *Config) []string { return []string{c.TxTimer.String()} }
	s.add = func(c *Config, text string) error {
		delay, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("not a time")
		}
		c.TxTimer = delay
		return nil
	}
	s.check = func(c *Config, _ int) error {
		switch {
		case c.TxTimer < 0:
			return errors.New("too small")
		case c.TxTimer > MaxTxTimer:
			return errors.New("too large")
		}
		return nil
	}
	return s
}

func metrics(s *Setting) *Setting {
	s.Kind = Text
	s.get = func(c *Config) []string { return []string{c.Metrics} }
	s.add = func(c *Config, text string) error {
		c.Metrics = text
		return nil
	}
	s.check = func(c *Config, _ int) error { return checkListenAddress(c.Metrics) }
	return s
}

// checkListenAddress refuses names that have to be looked up: a router must not
// wait for its resolver in order to start.
func checkListenAddress(address string) error {
	if address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return errors.New("not of the form HOST:PORT")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a TCP port", port)
	}
	if host == "" || host == "localhost" {
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Errorf("%q is not an IP address", host)
	}
	return nil
}
