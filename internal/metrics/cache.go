// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"maps"
	"net/http"
	"sync"
	"time"
)

// cache keeps the last answer of a handler for a short while, as the bytes that are sent, because rendering them is most of the cost.
// The handler must answer every request alike.
type cache struct {
	next  http.Handler
	keep  time.Duration
	clock func() time.Time

	mu   sync.Mutex // held while an answer is rendered, so that there is one rendering at a time
	last *reply     // nil before the first request
}

// reply is a whole answer. It is never changed once it is the cache's last.
type reply struct {
	at     time.Time // when rendering began: nothing in it is older
	status int
	header http.Header
	body   bytes.Buffer
}

// ServeHTTP sends the last answer, or a new one. The lock is not held while it is sent: a slow client holds up nobody.
func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := c.answer(r)
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes())
}

func (c *cache) answer(r *http.Request) *reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	if c.last != nil && now.Sub(c.last.at) < c.keep {
		return c.last
	}
	a := &reply{at: now, status: http.StatusOK, header: http.Header{}}
	c.next.ServeHTTP(a, r)
	c.last = a
	return a
}

// Header implements http.ResponseWriter.
func (a *reply) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *reply) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *reply) Write(p []byte) (int, error) { return a.body.Write(p) }
