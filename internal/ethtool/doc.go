// SPDX-License-Identifier: Apache-2.0

// Package ethtool reads and changes what a network device lets be changed:
// its channels (queues) and its features (offloads), and names its driver.
// It speaks generic netlink, so the kernel's own words for a refusal
// (extack) are in the errors.
//
// Every function works in the network namespace of the calling thread.
package ethtool
