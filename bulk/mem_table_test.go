// SPDX-License-Identifier: Apache-2.0

package bulk_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/xskfwd/xskfwd/bulk"
	"github.com/xskfwd/xskfwd/pagepool"
)

func TestMemTableRefusesBadRegistrations(t *testing.T) {
	table := bulk.NewMemTable()
	pool, err := pagepool.New(pagepool.Params{Name: "eth0-0", ID: 3, Provider: newMemory(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	give := func(pagepool.Page) {}
	for _, c := range []struct {
		id   pagepool.MemID
		mem  bulk.Mem
		want string
	}{
		{3, bulk.Mem{}, "exactly one"},
		{3, bulk.Mem{Pool: pool, Return: give}, "exactly one"},
		{4, bulk.Mem{Pool: pool}, "page pool eth0-0 has number 3"},
		{0, bulk.Mem{Pool: pool}, "page pool eth0-0 was given"},
		{bulk.MaxMemID + 1, bulk.Mem{Return: give}, "at most 65535"},
	} {
		if err := table.Register(c.id, c.mem); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("memory %d: error %v, want one with %q", c.id, err, c.want)
		}
	}
	if table.Len() != 0 {
		t.Errorf("the table has %d entries", table.Len())
	}
}

func TestMemTableRegistersOnceAndForgets(t *testing.T) {
	table := bulk.NewMemTable()
	mem := bulk.Mem{Return: func(pagepool.Page) {}}
	table.Unregister(5)
	if err := table.Register(5, mem); err != nil {
		t.Fatal(err)
	}
	if err := table.Register(5, mem); err == nil || !strings.Contains(err.Error(), "memory 5: already registered") {
		t.Errorf("the second registration: %v", err)
	}
	table.Unregister(5)
	table.Unregister(5)
	if err := table.Register(5, mem); err != nil {
		t.Errorf("registering anew: %v", err)
	}
	if err := table.Register(2, mem); err != nil || table.Len() != 6 {
		t.Errorf("error %v and %d entries, want none and 6", err, table.Len())
	}
}

// A snapshot is never changed: a loop that looks a memory up while it comes and goes sees it whole or not at all.
func TestMemTableChangesUnderLookups(t *testing.T) {
	const rounds = 2000
	table := bulk.NewMemTable()
	var taken uint64
	mem := bulk.Mem{Return: func(pagepool.Page) { taken++ }}
	done := make(chan error)
	go func() {
		for range rounds {
			if err := table.Register(9, mem); err != nil {
				done <- err
				return
			}
			table.Unregister(9)
			runtime.Gosched()
		}
		done <- nil
	}()
	var stats bulk.Stats
	var b bulk.FrameBulk
	for {
		b.Init(table, worker, bulk.QueueSize, bulk.Partition, &stats)
		b.Return(1, 9)
		b.Flush()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if stats.Immediate != taken || stats.Immediate+stats.Unknown != stats.Pages {
				t.Errorf("%d pages taken at once, statistics are %+v", taken, stats)
			}
			return
		default:
			runtime.Gosched()
		}
	}
}
