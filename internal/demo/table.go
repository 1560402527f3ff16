// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"time"
)

// table shows what the metrics say, once a second: a line each time, or on a
// terminal one table that is drawn over.
type table struct {
	out   io.Writer
	live  bool
	last  numbers
	drawn int // lines to go back over
	lines int
}

func newTable(out io.Writer, live bool) *table { return &table{out: out, live: live} }

// show draws a scrape, with rates since the one before.
func (t *table) show(n numbers) {
	if n.err != nil {
		fmt.Fprintln(t.out, "no metrics:", n.err)
		t.drawn = 0
		return
	}
	const soonest = time.Second / 2 // two scrapes closer than this are one answer from the daemon's cache
	if t.last.metrics != nil && n.at.Sub(t.last.at) < soonest {
		return
	}
	if t.live {
		t.draw(n)
	} else {
		t.line(n)
	}
	t.last = n
}

// rate is the growth of a counter per second since the last scrape.
func (t *table) rate(n numbers, name string, labels ...string) float64 {
	seconds := n.at.Sub(t.last.at).Seconds()
	if t.last.metrics == nil || seconds <= 0 {
		return 0
	}
	return (n.sum(name, labels...) - t.last.sum(name, labels...)) / seconds
}

func drops(n numbers) float64 {
	return n.sum("port_receive_drops_total") + n.sum("port_transmit_drops_total")
}

// bulkLength is the mean length of a bulk return.
func bulkLength(n numbers) float64 {
	flushes := n.sum("page_pool_bulk_flushes_total")
	if flushes == 0 {
		return 0
	}
	return n.sum("page_pool_bulk_flushed_frames_total") / flushes
}

const header = "  packets      pps    drops   recycled: cache       ring   bulk   timer: armed  fired  skipped   frames"

// line is one row of numbers.
func (t *table) line(n numbers) {
	const headerEvery = 20
	if t.lines%headerEvery == 0 {
		fmt.Fprintln(t.out, header)
	}
	t.lines++
	fmt.Fprintf(t.out, "%9.0f %8.0f %8.0f %17.0f %10.0f %6.1f %14.0f %6.0f %8.0f %8.0f\n",
		n.sum("port_transmit_packets_total"), t.rate(n, "port_transmit_packets_total"), drops(n),
		n.sum("page_pool_recycle_cached_total"), n.sum("page_pool_recycle_ring_total"), bulkLength(n),
		n.sum("tx_coalesce_timer_armed_total"), n.sum("tx_coalesce_timer_fired_total"),
		n.sum("tx_coalesce_timer_skipped_total"), n.sum("umem_frames"))
}

// draw is the table for a terminal.
func (t *table) draw(n numbers) {
	if t.drawn > 0 {
		fmt.Fprintf(t.out, "\x1b[%dA", t.drawn)
	}
	var rows []string
	for _, port := range []string{"left", "right"} {
		rows = append(rows, fmt.Sprintf("port %-6s received %10.0f (%7.0f/s)   sent %10.0f (%7.0f/s)   dropped %.0f", port,
			n.sum("port_receive_packets_total", "port", port), t.rate(n, "port_receive_packets_total", "port", port),
			n.sum("port_transmit_packets_total", "port", port), t.rate(n, "port_transmit_packets_total", "port", port),
			n.sum("port_receive_drops_total", "port", port)+n.sum("port_transmit_drops_total", "port", port)))
	}
	rows = append(rows,
		fmt.Sprintf("recycled    to cache %.0f   to ring %.0f   from the UMEM %.0f", n.sum("page_pool_recycle_cached_total"),
			n.sum("page_pool_recycle_ring_total"), n.sum("page_pool_alloc_slow_total")),
		fmt.Sprintf("bulk        flushes: full %.0f, pool change %.0f, end of poll %.0f   mean length %.1f",
			n.sum("page_pool_bulk_flushes_total", "reason", "full"), n.sum("page_pool_bulk_flushes_total", "reason", "pool_change"),
			n.sum("page_pool_bulk_flushes_total", "reason", "poll_end"), bulkLength(n)),
		fmt.Sprintf("tx timer    armed %.0f   fired %.0f   skipped, a poll being scheduled %.0f   system calls %.0f",
			n.sum("tx_coalesce_timer_armed_total"), n.sum("tx_coalesce_timer_fired_total"),
			n.sum("tx_coalesce_timer_skipped_total"), n.sum("tx_coalesce_timer_syscalls_total")),
		fmt.Sprintf("frames      free %.0f  cache %.0f  ring %.0f  fill %.0f  rx %.0f  tx %.0f  completion %.0f  held %.0f  = %.0f",
			n.sum("umem_frames", "state", "free"), n.sum("umem_frames", "state", "cache"), n.sum("umem_frames", "state", "ring"),
			n.sum("umem_frames", "state", "fill"), n.sum("umem_frames", "state", "rx"), n.sum("umem_frames", "state", "tx"),
			n.sum("umem_frames", "state", "completion"), n.sum("umem_frames", "state", "held"), n.sum("umem_frames")),
		"Ctrl-C ends the demo")
	for _, row := range rows {
		fmt.Fprintf(t.out, "\x1b[2K%s\n", row)
	}
	t.drawn = len(rows)
}
