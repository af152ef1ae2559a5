package perf

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
)

// mallocs returns how many objects this process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// row is one line of a table.
type row struct {
	name  string
	value any
}

// writeTable writes rows in two columns.
func writeTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, r := range rows {
		if _, err := fmt.Fprintf(t, "%s\t%v\n", r.name, r.value); err != nil {
			return err
		}
	}
	return t.Flush()
}
