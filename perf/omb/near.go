package omb

import "strings"

// nearest returns the field whose name is most like name, empty if none is.
func nearest(name string) string {
	if len(name) > maxShown {
		return ""
	}
	best, least := "", min(3, max(1, len(name)/3))+1
	for _, f := range fields {
		if d := distance(strings.ToLower(name), strings.ToLower(f.name)); d < least {
			best, least = f.name, d
		}
	}
	return best
}

// distance returns how many bytes must be put in, taken out or changed to make b
// of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // distances of a[:i] to each b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
