// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// DefaultAddr is where the metrics are served unless --metrics says otherwise: only to this machine.
const DefaultAddr = "127.0.0.1:9750"

const (
	// readTimeout is how long a client may take over its request, idleTimeout how long it may hold a connection between two. A client
	// that trickles bytes must not hold a connection for ever; if much smaller, a scrape over a bad line fails.
	readTimeout = 5 * time.Second
	idleTimeout = time.Minute
	// writeTimeout is how long a client may take to read the answer, about 100 KB. It is Prometheus' default scrape timeout: after
	// that nobody waits for the answer.
	writeTimeout = 10 * time.Second
	// maxHeaderBytes is ten times what Prometheus sends.
	maxHeaderBytes = 16 << 10
	// maxConns bounds open connections. A descriptor for each comes out of the limit that AF_XDP sockets need too; if smaller, a few
	// stuck clients shut out the rest.
	maxConns = 64
	// maxScrapes bounds answers that are being written at once; more get 503. A few Prometheus servers need one each.
	maxScrapes = 16
	// defaultCacheFor is how old an answer may be. A rendering of 758 series was measured at 6-12 ms and a kept answer at 0.1 ms
	// (BenchmarkScrape, both CPUs busy with other work): so 250 ms bound what any number of scrapes can cost in renderings to
	// 2-5% of a CPU. If longer, a person who looks right after an event sees the past.
	defaultCacheFor = 250 * time.Millisecond
)

// ErrAddrUnavailable is wrapped by the error of Listen if the address cannot be had now but may be later: the port is taken, or the
// address is not on this machine yet.
var ErrAddrUnavailable = errors.New("address unavailable")

// ServerConfig is what a Server needs.
type ServerConfig struct {
	Addr     string              // host:port; port 0 takes a free one
	Gatherer prometheus.Gatherer // what is served
	Ready    func() error        // nil error = ready; the error says what is waited for. A nil Ready is always ready.
	Log      *slog.Logger        // nil = silent
	CacheFor time.Duration       // how old an answer may be; 0 = 250 ms
}

// Server answers on /metrics, /-/healthy, /-/ready and /.
//
// It is meant to listen before any port is touched, so that a start which hangs or fails can be seen from outside. Nothing that its
// clients do reaches the workers: an answer is rendered at most once in CacheFor, by one goroutine at a time.
type Server struct {
	cfg    ServerConfig
	http   *http.Server
	served sync.WaitGroup // the goroutine in http.Server.Serve, and the one that retries
	stop   chan struct{}  // closed by Close; ends the retries

	mu     sync.Mutex
	addr   net.Addr // nil until it listens
	closed bool
	conns  int
}

// NewServer returns a server that does not listen yet.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.CacheFor == 0 {
		cfg.CacheFor = defaultCacheFor
	}
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	s := &Server{cfg: cfg, stop: make(chan struct{})}
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadTimeout:       readTimeout,
		ReadHeaderTimeout: readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		ConnState:         s.countConn,
	}
	return s
}

// Listen takes the address and serves from then on; it must not be called again after it has succeeded. An error that wraps
// ErrAddrUnavailable leaves the caller the choice; see ListenLater.
func (s *Server) Listen() error {
	l, err := net.Listen("tcp", s.cfg.Addr)
	if err != nil {
		return listenError(s.cfg.Addr, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(fmt.Errorf("metrics: listen on %s: %w", s.cfg.Addr, http.ErrServerClosed), l.Close())
	}
	s.addr = l.Addr()
	s.served.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Log.Error("metrics are no longer served", "addr", s.cfg.Addr, "err", err)
		}
	})
	return nil
}

// ListenLater tries again every so often, in the background, until the address can be had or Close is called. A router must not stop
// forwarding because another program sits on its metrics port, so the daemon warns, forwards, and calls this.
func (s *Server) ListenLater(every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.served.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			switch err := s.Listen(); {
			case err == nil:
				s.cfg.Log.Info("metrics are served now", "addr", s.Addr())
				return
			case errors.Is(err, http.ErrServerClosed):
				return
			case !errors.Is(err, ErrAddrUnavailable):
				s.cfg.Log.Error("metrics will not be served", "err", err)
				return
			}
		}
	})
}

// Addr is where the server listens, or "" as long as it does not.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr == nil {
		return ""
	}
	return s.addr.String()
}

// Close stops listening, lets answers that are being written finish until ctx ends, and then cuts them off.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("metrics: close %s: %w", s.cfg.Addr, err), s.http.Close())
	}
	s.served.Wait()
	return err
}

// listenError says whose fault it is and which flag cures it.
func listenError(addr string, err error) error {
	const cure = "; choose another address with --metrics HOST:PORT"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("metrics: listen on %s: another program has the port%s: %w (%w)", addr, cure, ErrAddrUnavailable, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("metrics: listen on %s: this machine does not have the address%s: %w (%w)", addr, cure, ErrAddrUnavailable, err)
	}
	return fmt.Errorf("metrics: listen on %s%s: %w", addr, cure, err)
}

// countConn closes a new connection at once when too many are open.
func (s *Server) countConn(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.conns++
		if s.conns > maxConns {
			_ = c.Close() // its own goroutine finds it closed and reports StateClosed
		}
	case http.StateClosed, http.StateHijacked:
		s.conns--
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", limit(maxScrapes, &cache{next: s.render(), keep: s.cfg.CacheFor, clock: time.Now}))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "healthy\n") })
	mux.HandleFunc("GET /-/ready", s.serveReady)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, index) })
	return mux
}

// render answers every request alike, whatever it asks for: all metrics, in the text format, not compressed. That lets one kept answer
// serve every client, however it varies its headers, and 100 KB are less work to send than to compress.
func (s *Server) render() http.Handler {
	all := promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{
		ErrorHandling:      promhttp.ContinueOnError, // one bad series must not cost all the others
		ErrorLog:           slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelError),
		DisableCompression: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { all.ServeHTTP(w, &http.Request{URL: &url.URL{}}) })
}

const index = `xskfwd, an AF_XDP packet forwarder

/metrics    what it counts, for Prometheus
/-/healthy  200 while the daemon answers
/-/ready    200 once it forwards, else 503 and the reason
`

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.cfg.Ready(); err != nil {
		answer(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
		return
	}
	answer(w, http.StatusOK, "ready\n")
}

// answer writes plain text. A client that is gone is its own loss.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// limit lets n requests into next at once and refuses more.
func limit(n int, next http.Handler) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			answer(w, http.StatusServiceUnavailable, "too many scrapes at once\n")
		}
	})
}
