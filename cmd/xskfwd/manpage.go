// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xskfwd/xskfwd/internal/capability"
)

const manDescription = `xskfwd joins pairs of network ports by wires: whatever one port of a wire receives, the other one sends, unchanged. Packets go from port to port through AF_XDP sockets and are not copied between them.

Everything a port receives goes to the other end of its wire, so the host itself can no longer be reached through it.

If the daemon dies, the XDP programs it left on the ports go on joining each wire in the kernel. A daemon that is started afterwards takes the wires back; "xskfwd detach" removes the programs. They live in the BPF file system; where that cannot outlive the daemon, as under "ip netns exec", neither do they, and the daemon says so when it starts.`

const manFile = `The file named by --config is in TOML. Its keys are the names of the options of "xskfwd run" without the dashes, but for "ports" and "wires", which are arrays of what --port and --wire take one by one. There are no tables. Numbers, true and false stand without quotes, everything else in quotes.

An option wins over the file and the file over the default; options of a list replace the whole list of the file. A key that is not known is an error. The settings are validated before anything is attached, and all mistakes are reported at once, each with its option or its line, the value and what is allowed.

A sample with every setting and its default comes with xskfwd.`

// entry is one row of a list in the page.
type entry struct{ term, text string }

var manExit = []entry{
	{"0", "Success. For run: stopped when asked to, nothing was left behind. For demo: every frame that was sent has arrived."},
	{"1", "Something failed, at the start or later. That includes what is sound as it is written but cannot be had on this machine: a port or queue that is not there, a cpu the process may not run on, more workers than queues, --umem-frames too small for the queues that were found."},
	{"2", "The command line or the configuration file is wrong, on whatever machine. Nothing was started."},
}

var manSignals = []entry{
	{"SIGTERM, SIGINT, SIGHUP", "Stop: take the ports back from the XDP programs, send what is still queued, remove the programs (see --on-exit). Further ones within a second of the first count as one with it. Another one after that ends the process at once and leaves the programs on the ports, as a kill does."},
}

var manFiles = []entry{
	{"/etc/xskfwd/xskfwd.toml", "The configuration of the system service. No file is read without --config."},
	{"/sys/fs/bpf/xskfwd", "The XDP programs and their maps. The BPF file system is mounted if it is not."},
	{"/run/xskfwd", "What has to be put back on the ports after a crash."},
}

var manEnvironment = []entry{
	{"JOURNAL_STREAM", "Set by systemd. Log lines for the journal have no timestamps."},
	{"NOTIFY_SOCKET, WATCHDOG_USEC", "Set by systemd. It is told when forwarding works, and that the workers are alive."},
	{"RUNTIME_DIRECTORY", "Set by systemd. Stands for /run/xskfwd."},
	{"TERM", "If it is dumb, demo writes lines instead of a table."},
}

func manCapabilities() []entry {
	var entries []entry
	for _, c := range capability.Table() {
		need := "Always needed, "
		if c.Needed == capability.Sometimes {
			need = "Sometimes needed, "
		}
		entries = append(entries, entry{c.Name, need + c.Why + ". Without: " + c.Without + "."})
	}
	return entries
}

const manSeeAlso = `.BR ip\-link (8),
.BR ethtool (8),
.BR tc\-bpf (8),
.BR bpf (2),
.BR systemd.service (5)
.PP
The kernel's documentation of AF_XDP: Documentation/networking/af_xdp.rst
`

// manPage renders xskfwd(8) from the same definitions as the commands.
func (e *env) manPage(root *cobra.Command) []byte {
	var p page
	p.line(`.TH XSKFWD 8 "" "xskfwd %s" "System Manager's Manual"`, roff(e.programVersion()))
	p.section("Name")
	p.line(`xskfwd \- %s`, roff(root.Short))
	p.section("Synopsis")
	for _, cmd := range visible(root) {
		p.line(".B xskfwd %s", roff(synopsis(cmd)))
		p.line(".br")
	}
	p.section("Description")
	p.text(manDescription, ".PP")
	p.section("Commands")
	for _, cmd := range visible(root) {
		long := cmd.Long
		if long == "" {
			long = sentence(cmd.Short)
		}
		p.entry(entry{cmd.Use, long})
	}
	p.options("Options of run", runOptions())
	p.options("Options of demo", demoFlags())
	p.section("Configuration file")
	p.text(manFile, ".PP")
	p.entries("Exit status", manExit)
	p.entries("Signals", manSignals)
	p.entries("Capabilities", manCapabilities())
	p.entries("Environment", manEnvironment)
	p.entries("Files", manFiles)
	p.section("Examples")
	p.text(runExample, ".PP")
	p.section("See also")
	p.WriteString(manSeeAlso)
	return p.Bytes()
}

func visible(root *cobra.Command) []*cobra.Command {
	var commands []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" {
			commands = append(commands, cmd)
		}
	}
	return commands
}

func synopsis(cmd *cobra.Command) string {
	if cmd.HasAvailableLocalFlags() {
		return cmd.Use + " [OPTION]..."
	}
	return cmd.Use
}

// page is roff text for the man macros.
type page struct{ bytes.Buffer }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) section(title string) { p.line(".SH %s", strings.ToUpper(title)) }

// text writes paragraphs with a macro between them. One that is indented is an
// example: its lines stay as they are.
func (p *page) text(text, between string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			p.line("%s", between)
		}
		if strings.HasPrefix(paragraph, "  ") {
			paragraph = ".nf\n" + roff(paragraph) + "\n.fi"
		} else {
			paragraph = roff(paragraph)
		}
		p.line("%s", paragraph)
	}
}

func (p *page) entries(title string, entries []entry) {
	p.section(title)
	for _, e := range entries {
		p.entry(e)
	}
}

func (p *page) entry(e entry) {
	p.line(".TP\n.B %s", roff(e.term))
	p.text(e.text, ".IP")
}

func (p *page) options(title string, options []option) {
	p.section(title)
	for _, o := range options {
		p.entry(entry{o.term(), o.description()})
	}
}

func (o option) term() string {
	term := "--" + o.name
	if o.short != "" {
		term = "-" + o.short + ", " + term
	}
	if o.arg != "" {
		term += " " + o.arg
	}
	return term
}

// description says all there is to say about an option. There is no reload yet,
// so each setting of the daemon is read at start only.
func (o option) description() string {
	text := sentence(o.usage())
	if o.more != "" {
		text += " " + o.more
	}
	if o.allowed != "" {
		text += " Allowed: " + o.allowed + "."
	}
	if o.def != "" {
		text += " Default: " + strings.TrimSpace(o.def+" "+o.unit) + "."
	}
	if o.key != "" {
		if o.key != o.name {
			text += " In the file: " + o.key + "."
		}
		text += " [startup only]"
	}
	return text
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

// roff escapes what the formatter would take for its own.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `"`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
