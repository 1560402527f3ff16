// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// patience is how long a test waits for something that must happen. Only a failing test needs all of it.
const patience = 30 * time.Second

// serve starts a server over a snapshot and closes it at the end of the test.
func serve(t *testing.T, snapshot func() Snapshot, adjust func(*Server)) *Server {
	t.Helper()
	s := NewServer(ServerConfig{Addr: "127.0.0.1:0", Gatherer: registry(t, snapshot), CacheFor: time.Hour})
	if adjust != nil {
		adjust(s)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeServer(t, s) })
	return s
}

func closeServer(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// get asks with a connection of its own, so that nothing is left open behind it.
func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	r, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(body)
}

func TestServerAnswersBeforeTheDaemonIsReady(t *testing.T) {
	var ready atomic.Bool
	s := NewServer(ServerConfig{
		Addr: "127.0.0.1:0", Gatherer: registry(t, func() Snapshot { return Snapshot{} }),
		Ready: func() error {
			if ready.Load() {
				return nil
			}
			return errors.New("port eth0: waiting for the link")
		},
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	defer closeServer(t, s)

	for path, want := range map[string]string{"/metrics": "xskfwd_build_info{", "/-/healthy": "healthy", "/": "/metrics"} {
		if status, body := get(t, s.Addr(), path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q, want 200 and %q", path, status, body, want)
		}
	}
	if status, body := get(t, s.Addr(), "/-/ready"); status != http.StatusServiceUnavailable || !strings.Contains(body, "waiting for the link") {
		t.Errorf("/-/ready before: %d %q, want 503 and the reason", status, body)
	}
	ready.Store(true)
	if status, _ := get(t, s.Addr(), "/-/ready"); status != http.StatusOK {
		t.Errorf("/-/ready after: %d, want 200", status)
	}
	if status, _ := get(t, s.Addr(), "/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("/debug/pprof/: %d, want 404", status)
	}
}

func TestServerExposesWhatPrometheusCanParse(t *testing.T) {
	s := serve(t, func() Snapshot { return busy(2) }, nil)
	_, body := get(t, s.Addr(), "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"xskfwd_umem_frames", "go_goroutines", "process_open_fds"} {
		if families[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestServerNamesTheTakenAddressAndTheFlag(t *testing.T) {
	first := serve(t, func() Snapshot { return Snapshot{} }, nil)
	second := NewServer(ServerConfig{Addr: first.Addr(), Gatherer: registry(t, func() Snapshot { return Snapshot{} })})
	defer closeServer(t, second)
	err := second.Listen()
	if !errors.Is(err, ErrAddrUnavailable) {
		t.Fatalf("err = %v, want ErrAddrUnavailable", err)
	}
	for _, want := range []string{first.Addr(), "--metrics", "another program has the port"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if second.Addr() != "" {
		t.Errorf("it listens on %s", second.Addr())
	}
}

func TestServerTellsWhatCannotHealFromWhatCan(t *testing.T) {
	for addr, later := range map[string]bool{
		"192.0.2.1:9750":     true, // an address of documentation: no machine has it
		"127.0.0.1:none":     false,
		"127.0.0.1:99999999": false,
		"127.0.0.1":          false,
	} {
		s := NewServer(ServerConfig{Addr: addr, Gatherer: registry(t, func() Snapshot { return Snapshot{} })})
		err := s.Listen()
		if err == nil || errors.Is(err, ErrAddrUnavailable) != later || !strings.Contains(err.Error(), "--metrics") {
			t.Errorf("%s: %v; may it be had later: want %v", addr, err, later)
		}
		closeServer(t, s)
	}
}

func TestServerListensLaterWhenTheAddressIsFree(t *testing.T) {
	first := serve(t, func() Snapshot { return Snapshot{} }, nil)
	second := NewServer(ServerConfig{Addr: first.Addr(), Gatherer: registry(t, func() Snapshot { return Snapshot{} })})
	defer closeServer(t, second)
	if err := second.Listen(); !errors.Is(err, ErrAddrUnavailable) {
		t.Fatal(err)
	}
	second.ListenLater(time.Millisecond)
	closeServer(t, first)
	await(t, func() bool { return second.Addr() != "" })
	if status, _ := get(t, second.Addr(), "/-/healthy"); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
}

// await polls for a condition.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the condition never came true")
		}
	}
}

func TestServerCloseEndsTheWaitForTheAddress(t *testing.T) {
	first := serve(t, func() Snapshot { return Snapshot{} }, nil)
	second := NewServer(ServerConfig{Addr: first.Addr(), Gatherer: registry(t, func() Snapshot { return Snapshot{} })})
	second.ListenLater(time.Hour)
	closeServer(t, second) // goleak finds the goroutine if it is left
	second.ListenLater(time.Hour)
	closeServer(t, second)
	if err := second.Listen(); err == nil {
		t.Error("it listens after Close")
	}
}

func TestServerTakesOneSnapshotForAnyNumberOfScrapes(t *testing.T) {
	var taken atomic.Int64
	s := serve(t, func() Snapshot { taken.Add(1); return busy(4) }, nil)
	var scrapers sync.WaitGroup
	for i := range 8 {
		scrapers.Go(func() {
			for range 25 {
				r := httptest.NewRequest(http.MethodGet, "/metrics?name[]=x", nil)
				r.Header.Set("Accept", strings.Repeat("x", i)) // however they ask
				w := httptest.NewRecorder()
				s.http.Handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "xskfwd_umem_frames") {
					t.Errorf("status %d", w.Code)
				}
			}
		})
	}
	scrapers.Wait()
	if n := taken.Load(); n != 1 {
		t.Errorf("%d snapshots were taken for 200 scrapes within one caching time, want 1", n)
	}
}

func TestCacheRendersAnewWhenItsAnswerIsOld(t *testing.T) {
	now := time.Unix(0, 0)
	renderings := 0
	c := &cache{keep: time.Second, clock: func() time.Time { return now }, next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		renderings++
		w.Header().Set("Content-Type", "text/x")
		w.WriteHeader(http.StatusTeapot)
	})}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {999 * time.Millisecond, 1}, {time.Millisecond, 2}, {time.Hour, 3}} {
		now = now.Add(step.after)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if renderings != step.want {
			t.Errorf("%v later: %d renderings, want %d", step.after, renderings, step.want)
		}
		if w.Code != http.StatusTeapot || w.Header().Get("Content-Type") != "text/x" {
			t.Errorf("%v later: status %d, header %v", step.after, w.Code, w.Header())
		}
	}
}

// stuck is a client that reads nothing until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	reached, release chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	close(s.reached)
	<-s.release
	return len(p), nil
}

func TestSlowReaderHoldsUpNobody(t *testing.T) {
	c := &cache{keep: 0, clock: time.Now, next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "body")
	})}
	slow := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	var done sync.WaitGroup
	done.Go(func() { c.ServeHTTP(slow, httptest.NewRequest(http.MethodGet, "/", nil)) })
	<-slow.reached
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Body.String() != "body" {
		t.Errorf("the other client got %q", w.Body)
	}
	close(slow.release)
	done.Wait()
}

func TestServerCutsOffAClientThatTricklesItsRequest(t *testing.T) {
	s := serve(t, func() Snapshot { return Snapshot{} }, func(s *Server) {
		for name, d := range map[string]time.Duration{
			"ReadHeaderTimeout": s.http.ReadHeaderTimeout, "ReadTimeout": s.http.ReadTimeout,
			"WriteTimeout": s.http.WriteTimeout, "IdleTimeout": s.http.IdleTimeout,
		} {
			if d <= 0 {
				t.Errorf("%s is not set", name)
			}
		}
		s.http.ReadTimeout, s.http.ReadHeaderTimeout = 20*time.Millisecond, 20*time.Millisecond
	})
	c := dial(t, s.Addr())
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	if status, _ := get(t, s.Addr(), "/metrics"); status != http.StatusOK {
		t.Errorf("the other client got %d", status)
	}
	expectClosed(t, c)
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// expectClosed reads until the server hangs up, and fails if it does not.
func expectClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the server keeps the connection")
	}
}

func TestServerBoundsItsConnections(t *testing.T) {
	s := serve(t, func() Snapshot { return Snapshot{} }, func(s *Server) {
		s.http.ReadTimeout, s.http.ReadHeaderTimeout = time.Hour, time.Hour // only the bound may close one
	})
	held := make([]net.Conn, maxConns)
	for i := range held {
		held[i] = dial(t, s.Addr())
	}
	await(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.conns == maxConns })
	expectClosed(t, dial(t, s.Addr()))
	for _, c := range held[:2] {
		_ = c.Close()
	}
	await(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.conns < maxConns })
	if status, _ := get(t, s.Addr(), "/metrics"); status != http.StatusOK {
		t.Errorf("status %d after connections were given back", status)
	}
}

func TestLimitRefusesMoreScrapesThanItsNumber(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	h := limit(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-release }))
	var done sync.WaitGroup
	for range 2 {
		done.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) })
		<-inside
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("third: status %d, header %v", w.Code, w.Header())
	}
	close(release)
	done.Wait()
	done.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) })
	<-inside
	done.Wait()
}

func TestServerCloseLetsARunningScrapeFinish(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func() Snapshot { close(inside); <-release; return busy(1) }, nil)
	c := dial(t, s.Addr())
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-inside
	var closing sync.WaitGroup
	closing.Go(func() { closeServer(t, s) })
	await(t, func() bool { // it listens no more
		c, err := net.Dial("tcp", s.Addr())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(release)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || !bytes.Contains(body, []byte("xskfwd_xsk_ring_entries")) {
		t.Errorf("the running scrape got %d bytes, %v", len(body), err)
	}
	closing.Wait()
}

func TestServerCloseIsBoundedByItsContext(t *testing.T) {
	inside, release := make(chan struct{}), make(chan struct{})
	s := NewServer(ServerConfig{Addr: "127.0.0.1:0", Gatherer: registry(t, func() Snapshot { close(inside); <-release; return Snapshot{} })})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, s.Addr())
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-inside
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "close 127.0.0.1:0") {
		t.Errorf("err = %v", err)
	}
	expectClosed(t, c)
	close(release)
}

func TestServerLeavesOutASeriesThatComesTwice(t *testing.T) {
	var log bytes.Buffer
	var calls atomic.Int64
	snapshot := func() Snapshot {
		if calls.Add(1) == 1 {
			return Snapshot{Ports: []Port{{Name: "eth0", Queues: []Queue{{}, {}}}}} // one queue number twice
		}
		return busy(1)
	}
	s := NewServer(ServerConfig{
		Addr: "127.0.0.1:0", Gatherer: registry(t, snapshot), CacheFor: time.Nanosecond,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	status, body := get(t, s.Addr(), "/metrics")
	if status != http.StatusOK || !strings.Contains(body, "xskfwd_port_info") {
		t.Errorf("with a series twice: %d, want 200 and all that is good", status)
	}
	if status, body = get(t, s.Addr(), "/metrics"); status != http.StatusOK || !strings.Contains(body, "xskfwd_umem_frames") {
		t.Errorf("afterwards: %d", status)
	}
	closeServer(t, s)
	if !strings.Contains(log.String(), "collected before with the same name and label values") {
		t.Errorf("the log does not tell: %s", log.String())
	}
}

// Ports come and go while many scrape.
func TestConcurrentScrapesDuringReconfigurationAreWhole(t *testing.T) {
	var turn atomic.Int64
	s := NewServer(ServerConfig{Addr: "127.0.0.1:0", CacheFor: time.Nanosecond, Gatherer: registry(t, func() Snapshot {
		full := busy(2)
		if turn.Add(1)%2 == 0 {
			full.Ports, full.Pools = full.Ports[:1], full.Pools[:2]
		}
		return full
	})})
	defer closeServer(t, s)
	var scrapers sync.WaitGroup
	for range 4 {
		scrapers.Go(func() {
			parser := expfmt.NewTextParser(model.UTF8Validation)
			for range 10 {
				w := httptest.NewRecorder()
				s.http.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				families, err := parser.TextToMetricFamilies(w.Body)
				if err != nil || w.Code != http.StatusOK {
					t.Errorf("status %d, %v", w.Code, err)
					return
				}
				ports := len(families["xskfwd_port_up"].GetMetric())
				pools := len(families["xskfwd_page_pool_ring_size"].GetMetric())
				if pools != 2*ports {
					t.Errorf("%d pools with %d ports: parts of two snapshots in one answer", pools, ports)
				}
			}
		})
	}
	scrapers.Wait()
}

func BenchmarkScrape(b *testing.B) {
	reg := prometheus.NewRegistry()
	if err := Register(reg, func() Snapshot { return busy(4) }); err != nil {
		b.Fatal(err)
	}
	for name, keep := range map[string]time.Duration{"rendered": time.Nanosecond, "kept": time.Hour} {
		b.Run(name, func(b *testing.B) {
			s := NewServer(ServerConfig{Gatherer: reg, CacheFor: keep})
			b.ReportAllocs()
			for b.Loop() {
				s.http.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
			}
		})
	}
}
