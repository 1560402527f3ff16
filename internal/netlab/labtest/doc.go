// SPDX-License-Identifier: Apache-2.0

// Package labtest is netlab for tests: what it makes is gone when the test
// ends, and what a package's tests leave behind fails them.
package labtest
