package perf

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"text/tabwriter"
	"time"
)

// rate returns n per second, rounded to one digit behind the point.
func rate(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return math.Round(n/d.Seconds()*10) / 10
}

// per returns n per record, rounded to three digits behind the point.
func per(n float64, records int64) float64 {
	if records <= 0 {
		return 0
	}
	return math.Round(n/float64(records)*1000) / 1000
}

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

// interrupted is the first row of a run that ended early.
func interrupted(yes bool) []row {
	if !yes {
		return nil
	}
	return []row{{"interrupted", "the run ended early: what follows was measured until then, and not all of it read back"}}
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
