// SPDX-License-Identifier: Apache-2.0

package config

// Nearest returns the one of the words that a mistyped word was most likely meant
// to be, or "" if none is near. It allows one slip for each three letters, which
// is where suggestions stop looking like guesses.
func Nearest(word string, words []string) string {
	if len(word) > 64 { // no name is as long, and the work is quadratic
		return ""
	}
	best, bestDistance := "", len(word)/3+1
	for _, candidate := range words {
		if d := distance(word, candidate); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace to get from a
// to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances of the read part of a to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
