package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// table is what is printed: for people, or as Markdown.
type table struct {
	title string
	notes []string
	head  []string
	rows  [][]string
}

// writeText writes t in columns.
func (t *table) writeText(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n", t.title)
	for _, note := range t.notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.head}, t.rows...) {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// writeMarkdown writes t as a table of Markdown.
func (t *table) writeMarkdown(w io.Writer) error {
	fmt.Fprintf(w, "### %s\n\n", t.title)
	for _, note := range t.notes {
		fmt.Fprintf(w, "%s\n", note)
	}
	if len(t.notes) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
	for _, row := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	_, err := fmt.Fprintln(w)
	return err
}

// spread is some values of one quantity.
type spread []float64

// median returns the middle one, the mean of the middle two if there are as
// many below as above, and 0 of none.
func (s spread) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// short writes the median with three digits, and - for none.
func (s spread) short() string {
	if len(s) == 0 {
		return "-"
	}
	return digits(s.median())
}

// full writes median, least and greatest.
func (s spread) full() string {
	if len(s) < 2 {
		return s.short()
	}
	return fmt.Sprintf("%s (%s–%s)", digits(s.median()), digits(slices.Min(s)), digits(slices.Max(s)))
}

// digits writes x with three digits that count, and thousands apart.
func digits(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 0.995:
		return fmt.Sprintf("%.2f", x)
	case x < 9.95:
		return fmt.Sprintf("%.1f", x)
	case x < 1000:
		return fmt.Sprintf("%.0f", x)
	}
	for scale := 1.0; ; scale *= 10 {
		if x/scale < 1000 {
			return thousands(int64(x/scale+0.5) * int64(scale))
		}
	}
}

// thousands writes n with a space between groups of three digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + " " + s[at:]
	}
	return s
}
