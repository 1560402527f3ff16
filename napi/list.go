// SPDX-License-Identifier: Apache-2.0

package napi

// list is the loop's poll list, first in, first out, linked through the instances.
//
// Owner: the loop's thread.
type list struct {
	head, tail *Napi
}

func (l *list) empty() bool { return l.head == nil }

func (l *list) push(n *Napi) {
	n.next = nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
}

// pop returns nil if the list is empty.
func (l *list) pop() *Napi {
	n := l.head
	if n == nil {
		return nil
	}
	l.head = n.next
	if l.head == nil {
		l.tail = nil
	}
	n.next = nil
	return n
}
