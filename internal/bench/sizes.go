// SPDX-License-Identifier: Apache-2.0

package bench

// Fixed gives every frame one size.
func Fixed(bytes int) func(uint32) int {
	return func(uint32) int { return bytes }
}

// Mixed scatters sizes evenly between two bounds, both of which occur.
func Mixed(low, high int) func(uint32) int {
	return func(n uint32) int {
		// A multiplication by an odd constant spreads neighbouring numbers over all 32 bits.
		h := n * 0x9e3779b1
		return low + int(uint64(h)*uint64(high-low+1)>>32)
	}
}

// IMIX is the usual mix of small, middle and full frames, 7:4:1 in every
// imixLength frames.
func IMIX(n uint32) int {
	switch n % imixLength {
	case 1, 3, 8, 10:
		return 594
	case 6:
		return 1514
	default:
		return 64
	}
}

const imixLength = 12
