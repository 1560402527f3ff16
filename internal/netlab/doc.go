// SPDX-License-Identifier: Apache-2.0

// Package netlab makes small networks to test in: network namespaces, veth
// pairs between them, addresses, and processes started inside. It uses system
// calls and netlink only, so it needs root but no program of the machine, and
// it never touches a device it did not make.
package netlab
