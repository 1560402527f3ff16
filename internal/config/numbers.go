// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strconv"
	"strings"
)

// parseNumbers reads a list such as "0-3,6": numbers and ascending ranges, no
// number twice, all below limit. It keeps the order in which they were written.
func parseNumbers(text string, limit int) ([]int, error) {
	var numbers []int
	seen := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		first, last, err := parseRange(part, limit)
		if err != nil {
			return nil, err
		}
		for n := first; n <= last; n++ {
			if seen[n] {
				return nil, fmt.Errorf("%d is given twice", n)
			}
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

func parseRange(part string, limit int) (first, last int, err error) {
	from, to, isRange := strings.Cut(part, "-")
	if !isRange {
		to = from
	}
	if !isDigits(from) || !isDigits(to) {
		return 0, 0, fmt.Errorf("%q is neither a number nor a range such as 0-3", part)
	}
	// Errors of Atoi can only mean that the number is too large.
	first, errFirst := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	switch {
	case errFirst != nil || first >= limit:
		return 0, 0, fmt.Errorf("%s is too large: the last one there can be is %d", from, limit-1)
	case errLast != nil || last >= limit:
		return 0, 0, fmt.Errorf("%s is too large: the last one there can be is %d", to, limit-1)
	case last < first:
		return 0, 0, fmt.Errorf("the range %s ends before it begins", part)
	}
	return first, last, nil
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// formatNumbers is the inverse of parseNumbers.
func formatNumbers(numbers []int) string {
	var parts []string
	for len(numbers) > 0 {
		run := 1
		for run < len(numbers) && numbers[run] == numbers[run-1]+1 {
			run++
		}
		part := strconv.Itoa(numbers[0])
		if run > 1 {
			part += "-" + strconv.Itoa(numbers[run-1])
		}
		parts = append(parts, part)
		numbers = numbers[run:]
	}
	return strings.Join(parts, ",")
}

// checkNumbers is for lists that did not come through parseNumbers.
func checkNumbers(numbers []int, limit int) error {
	seen := map[int]bool{}
	for _, n := range numbers {
		if n < 0 || n >= limit {
			return fmt.Errorf("%d is not from 0 to %d", n, limit-1)
		}
		if seen[n] {
			return fmt.Errorf("%d is given twice", n)
		}
		seen[n] = true
	}
	return nil
}
