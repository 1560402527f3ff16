// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/xskfwd/xskfwd/internal/sdnotify"
)

// service is the daemon's side of the service manager, if there is one.
type service struct {
	*sdnotify.Notifier
	log *slog.Logger
}

// newService reads the manager's environment. A manager that cannot be
// understood is no reason not to forward.
func newService(log *slog.Logger) service {
	n, err := sdnotify.FromEnvironment(os.Getenv, os.Getpid())
	if err != nil {
		log.Warn("the service manager's environment makes no sense: it is not notified", "err", err)
		n = new(sdnotify.Notifier)
	}
	return service{n, log}
}

// ready says that forwarding works.
func (s service) ready(status string) { s.warn(s.Ready(status)) }

// stopping says that the daemon is on its way out.
func (s service) stopping() { s.warn(s.Stopping("sending what is on its way")) }

func (s service) warn(err error) {
	if err != nil {
		s.log.Warn("the service manager could not be notified", "err", err)
	}
}

// slowest is how long the slowest worker has been in the poll it is in.
func (p *plane) slowest() time.Duration {
	var age time.Duration
	for _, w := range p.workers {
		age = max(age, w.Age())
	}
	return age
}

// feed keeps the manager's watchdog fed while all workers move. The returned
// function ends it.
func (s service) feed(p *plane) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.FeedWatchdog(ctx, p.slowest, s.log)
	}()
	return func() {
		cancel()
		<-done
	}
}
