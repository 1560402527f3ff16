// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// programEnv in the environment turns the test program into xskfwd itself, which
// the demo starts as its daemon in turn.
const programEnv = "XSKFWD_TEST_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		main()
	}
	labtest.Main(m)
}

// program is a command that runs xskfwd.
func program(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(labtest.Context(t), os.Args[0], args...)
	cmd.Env = append(os.Environ(), programEnv+"=1", "TERM=xterm")
	return cmd
}

// terminal makes a pseudo-terminal: what a person types and reads, and what a
// program has as its controlling terminal.
func terminal(t *testing.T) (person, tty *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return person, tty
}

// Everything in the terminal's foreground gets the signal of Ctrl-C, as it does
// when make runs the demo.
func TestIntegrationDemoEndsWellWithCtrlC(t *testing.T) {
	labtest.Privileged(t)
	person, tty := terminal(t)
	demo := program(t, "demo", "--rate", "1000")
	demo.Stdin, demo.Stdout, demo.Stderr = tty, tty, tty
	demo.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: unix.SIGKILL}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close() // reading fails with EIO once the demo has closed it too
	seen := readUntil(t, person, "Ctrl-C ends the demo")
	if _, err := person.WriteString("\x03"); err != nil {
		t.Error(err)
	}
	seen += readUntil(t, person, "")
	if err := demo.Wait(); err != nil || !strings.Contains(seen, "a to b: ") {
		t.Errorf("demo: %v; it wrote\n%s", err, seen)
	}
}

// readUntil reads what is written to a terminal, up to a text or, if that is
// empty, to the end of the last program on it.
func readUntil(t *testing.T, person *os.File, text string) string {
	t.Helper()
	var all strings.Builder
	buf := make([]byte, 4096)
	for text == "" || !strings.Contains(all.String(), text) {
		n, err := person.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			if text != "" || !errors.Is(err, unix.EIO) {
				t.Errorf("terminal: %v", err)
			}
			break
		}
	}
	return all.String()
}
