// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/xskfwd/xskfwd/internal/netlab/labtest"
)

// What a TCP connection carries comes back byte for byte, over both families:
// every segment and acknowledgement has a right checksum after the wire.
func TestIntegrationTCPCarriesEveryByte(t *testing.T) {
	text := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(text)
	r := newHosts(t)
	r.start()
	for i, family := range []string{"ipv4", "ipv6"} {
		t.Run(family, func(t *testing.T) {
			r.t = t
			server := r.echoServer(hostsB[i])
			var conn net.Conn
			if err := r.a.Do(func() (err error) { conn, err = net.Dial("tcp", server); return err }); err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			limit, _ := labtest.Context(t).Deadline()
			if err := conn.SetDeadline(limit); err != nil {
				t.Fatal(err)
			}
			sent := make(chan error, 1)
			go func() {
				_, err := conn.Write(text)
				sent <- err
			}()
			got := make([]byte, len(text))
			if n, err := io.ReadFull(conn, got); err != nil {
				t.Fatalf("after %d bytes: %v\n%s", n, err, r.daemon.Log())
			}
			if err := <-sent; err != nil || !bytes.Equal(got, text) {
				t.Errorf("sent with %v; the same came back: %v", err, bytes.Equal(got, text))
			}
		})
	}
	r.t = t
	r.stop()
}

// echoServer sends back whatever a connection to host b brings.
func (r *rig) echoServer(host string) (address string) {
	r.t.Helper()
	var l net.Listener
	err := r.b.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := l.Accept(); err == nil {
			_, _ = io.Copy(conn, conn) // ends with the connection
			conn.Close()
		}
	}()
	r.t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}
