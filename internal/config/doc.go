// SPDX-License-Identifier: Apache-2.0

// Package config is everything xskfwd can be told: which ports, which wires,
// and how to run them.
//
// One table, [Settings], has a row for each setting. The flags of `xskfwd run`,
// the keys of the file, the sample file, the man pages and the error messages
// are all made from that table, so none of them can fall behind the others.
//
// [Load] puts the command line over the file over the defaults and validates
// the result. It reports every mistake it finds, not the first one, and each by
// the flag or the line it was made in.
package config
