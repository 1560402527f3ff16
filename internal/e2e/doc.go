// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the daemon as a user would, between network namespaces of
// its own, and looks at what arrives at the other end and at what the daemon
// says of it. One scenario a file; its code is in tests only.
package e2e
