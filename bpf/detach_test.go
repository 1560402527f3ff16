// SPDX-License-Identifier: Apache-2.0

package bpf

import "testing"

// One bpffs serves all network namespaces of a host. Whoever tidies up in one
// must not cut a wire in another, nor be refused because one is in use there.
func TestIntegrationDetachAllLeavesOtherNamespacesAlone(t *testing.T) {
	inLab(t, func(l *lab) {
		r0, _ := l.veth("r0", "a0", 1)
		left := Options{Ifindex: r0, Ifname: "r0", Queues: 1, PinDir: l.pinDir("r0")}
		l.must(l.attach(left).Close())
		r1, _ := l.veth("r1", "b0", 1)
		held := l.attach(Options{Ifindex: r1, Ifname: "r1", Queues: 1, PinDir: l.pinDir("r1")})
		before := l.files(l.root())

		l.elsewhere(func() {
			if removed, err := DetachAll(l.root()); err != nil || len(removed) != 0 {
				t.Errorf("in another namespace: removed %v, %v, want nothing and no error", removed, err)
			}
		})
		if after := l.files(l.root()); len(after) != len(before) || !l.attached(r0).present {
			t.Errorf("pins %v, were %v; r0 has %s", after, before, l.attached(r0))
		}

		l.must(held.Detach())
		l.remove("r0")
		l.elsewhere(func() {
			if removed, err := DetachAll(l.root()); err != nil || len(removed) == 0 {
				t.Errorf("after the device has gone: removed %v, %v, want its pins", removed, err)
			}
		})
	})
}
