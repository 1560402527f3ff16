// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the tests of the repository as a whole: who may import whom, what every source file
// carries, and whether the documents tell of what is there. It has no code of its own.
//
// The rules about packages are data, in rules_test.go. A new package gets its row there, and one in the package
// table of docs/ARCHITECTURE.md; without them its first commit fails.
package archtest
