// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/xskfwd/xskfwd/internal/bench"
)

const (
	// window is how many frames may be on their way, each direction: less than
	// an RX ring holds, so that what does not arrive was lost and not overrun.
	window = 1024
	// chunk is how many frames are sent at once.
	chunk = 128
	// mostFrames bounds a stream; its books have room for no more.
	mostFrames = 30_000_000
)

// direction is a stream of numbered frames from one host to the other.
type direction struct {
	name     string
	stream   *bench.Stream
	sender   *bench.Sender
	recorder *bench.Recorder
}

// traffic is both directions.
type traffic struct {
	ways []*direction
}

func openTraffic(l *lab) (_ *traffic, err error) {
	t := &traffic{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	macA := net.HardwareAddr{2, 0, 0, 0, 0, 0xa}
	macB := net.HardwareAddr{2, 0, 0, 0, 0, 0xb}
	for i, w := range []struct {
		name     string
		src, dst net.HardwareAddr
	}{{"a to b", macA, macB}, {"b to a", macB, macA}} {
		d := &direction{name: w.name}
		t.ways = append(t.ways, d)
		from, fromIf, to, toIf := l.a, "host-a", l.b, "host-b"
		if i == 1 {
			from, fromIf, to, toIf = to, toIf, from, fromIf
		}
		if d.stream, err = bench.NewStream(bench.StreamConfig{ID: uint16(i), Src: w.src, Dst: w.dst, Flows: 4, Size: bench.IMIX}); err != nil {
			return nil, err
		}
		if d.recorder, err = bench.NewRecorder(to, toIf, d.stream); err != nil {
			return nil, err
		}
		if d.sender, err = bench.NewSender(from, fromIf, d.stream); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// send sends both ways until frames are sent or ctx is done, which is no error.
func (t *traffic) send(ctx context.Context, frames, rate int) error {
	each := mostFrames
	if frames > 0 {
		each = min(mostFrames, (frames+1)/2)
	}
	errs := make(chan error, len(t.ways))
	for _, d := range t.ways {
		go func() { errs <- d.send(ctx, each, (rate+1)/2) }()
	}
	var all []error
	for range t.ways {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// send keeps a window of frames on their way.
func (d *direction) send(ctx context.Context, frames, rate int) error {
	for ctx.Err() == nil && int(d.sender.Sent()) < frames {
		n := min(chunk, frames-int(d.sender.Sent()))
		var err error
		if rate > 0 {
			err = d.sender.SendPaced(ctx, n, rate)
		} else {
			err = d.sender.Send(ctx, n)
		}
		if err == nil {
			err = d.waitForWindow(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return nil
}

// waitForWindow waits until no more than a window is on its way. If nothing
// arrives for long, frames are lost, and the verdict will say so.
func (d *direction) waitForWindow(ctx context.Context) error {
	sent := d.sender.Sent()
	if sent <= window {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, arriveTimeout)
	defer cancel()
	return d.recorder.Wait(ctx, d.stream, sent-window)
}

// verdict waits for what is on its way, and says what became of everything.
func (t *traffic) verdict(out io.Writer) error {
	var errs []error
	for _, d := range t.ways {
		ctx, cancel := context.WithTimeout(context.Background(), arriveTimeout)
		waitErr := d.recorder.Wait(ctx, d.stream, d.sender.Sent())
		cancel()
		report, err := d.recorder.Report(d.stream, d.sender.Sent())
		fmt.Fprintf(out, "%s: %s\n", d.name, report)
		if err != nil || !report.Complete() {
			errs = append(errs, fmt.Errorf("%s: not all that was sent has arrived as it was: %s: %w", d.name, report, errors.Join(waitErr, err)))
		}
		if report.Sent == 0 {
			errs = append(errs, fmt.Errorf("%s: nothing was sent", d.name))
		}
	}
	return errors.Join(errs...)
}

func (t *traffic) close() error {
	var errs []error
	for _, d := range t.ways {
		if d.sender != nil {
			errs = append(errs, d.sender.Close())
		}
		if d.recorder != nil {
			errs = append(errs, d.recorder.Close())
		}
	}
	return errors.Join(errs...)
}
