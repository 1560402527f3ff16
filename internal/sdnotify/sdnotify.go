// SPDX-License-Identifier: Apache-2.0

// Package sdnotify tells the service manager how the daemon is doing, by the protocol of sd_notify(3): one datagram of NAME=value lines
// to the socket that $NOTIFY_SOCKET names. Without that variable everything here does nothing, so that the daemon need not know
// whether a service manager is there.
package sdnotify

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// sendTimeout bounds a message to a service manager that does not read. It must stay far below a watchdog interval; the manager reads
// within milliseconds when it is alive.
const sendTimeout = time.Second

// Notifier sends to the service manager. The zero value sends to nobody. It may be used from several goroutines.
type Notifier struct {
	socket   string        // path, or '@' and an abstract name; "" = nobody listens
	watchdog time.Duration // 0 = the manager does not want to be fed
}

// FromEnvironment reads what the service manager has set for the process with this number; lookup is os.Getenv.
func FromEnvironment(lookup func(string) string, pid int) (*Notifier, error) {
	n := &Notifier{socket: lookup("NOTIFY_SOCKET")}
	if n.socket == "" {
		return n, nil
	}
	if n.socket[0] != '/' && n.socket[0] != '@' {
		return &Notifier{}, fmt.Errorf("sdnotify: NOTIFY_SOCKET=%s: neither a path nor an abstract socket", n.socket)
	}
	usec := lookup("WATCHDOG_USEC")
	if usec == "" {
		return n, nil
	}
	if other := lookup("WATCHDOG_PID"); other != "" && other != strconv.Itoa(pid) {
		return n, nil // meant for our parent
	}
	us, err := strconv.ParseInt(usec, 10, 64)
	if err != nil || us <= 0 || us > int64(1<<63-1)/int64(time.Microsecond) {
		return n, fmt.Errorf("sdnotify: WATCHDOG_USEC=%s: not a number of microseconds", usec)
	}
	n.watchdog = time.Duration(us) * time.Microsecond
	return n, nil
}

// Enabled says whether anybody listens.
func (n *Notifier) Enabled() bool { return n.socket != "" }

// WatchdogInterval is within what time the manager wants to be fed; 0 = not at all.
func (n *Notifier) WatchdogInterval() time.Duration { return n.watchdog }

// Ready says that the daemon does its work now, and in what state.
func (n *Notifier) Ready(status string) error { return n.send("READY=1\n" + statusLine(status)) }

// Status shows one line in systemctl status.
func (n *Notifier) Status(status string) error { return n.send(statusLine(status)) }

// Stopping says that the daemon is on its way out, and why.
func (n *Notifier) Stopping(status string) error { return n.send("STOPPING=1\n" + statusLine(status)) }

// Reloading says that the configuration is being loaded again; Ready ends it. monotonic is the time on CLOCK_MONOTONIC, which the
// manager compares with when it asked.
func (n *Notifier) Reloading(monotonic time.Duration) error {
	return n.send("RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(monotonic.Microseconds(), 10))
}

// Watchdog feeds the watchdog once.
func (n *Notifier) Watchdog() error { return n.send("WATCHDOG=1") }

// statusLine keeps a status from becoming two assignments.
func statusLine(status string) string {
	return "STATUS=" + strings.Map(func(r rune) rune {
		if r == '\n' || r == 0 {
			return ' '
		}
		return r
	}, status)
}

// send opens the socket anew each time: messages are rare, and the manager may have been replaced since the last one.
func (n *Notifier) send(message string) (err error) {
	if n.socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("sdnotify: %s: %w", n.socket, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return fmt.Errorf("sdnotify: %s: %w", n.socket, err)
	}
	if _, err := c.Write([]byte(message)); err != nil {
		return fmt.Errorf("sdnotify: send %q to %s: %w", message, n.socket, err)
	}
	return nil
}
