// Command compare prints how long every way of package codecs takes, and how
// many times longer than ours: tables in Markdown.
//
//	go run ./codecs/compare                        from the folder of this module
//	go run ./codecs/compare -sizes 64 -rounds 51
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stratalog/stratalog/perf/peers/codecs"
)

func main() {
	sizes := flag.String("sizes", "128,1024", "body sizes in bytes, comma-separated")
	rounds := flag.Int("rounds", 101, "rounds; every way has its turn in each, in another order")
	turn := flag.Duration("turn", 2*time.Millisecond, "processor time of one turn")
	flag.Parse()
	err := fmt.Errorf("%q: there are no arguments but flags, and rounds must be positive", flag.Args())
	if flag.NArg() == 0 && *rounds > 0 {
		err = run(*sizes, *rounds, *turn, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// run measures with bodies of each of sizes and writes the tables to w.
func run(sizes string, rounds int, turn time.Duration, w io.Writer) error {
	for size := range strings.SplitSeq(sizes, ",") {
		body, err := strconv.Atoi(strings.TrimSpace(size))
		if err != nil || body < 0 {
			return fmt.Errorf("sizes: %q is no number of bytes", size)
		}
		result, err := codecs.Measure(body, rounds, turn)
		if err != nil {
			return err
		}
		write(w, fmt.Sprintf("Encode, body of %d B", body), codecs.EncodeBar, result.Encode)
		write(w, fmt.Sprintf("Decode and read every field, body of %d B", body), codecs.DecodeBar, result.Decode)
	}
	return nil
}

// write prints one table; behind a ratio are its quartiles.
func write(w io.Writer, title string, bar float64, rows []codecs.Row) {
	fmt.Fprintf(w, "### %s\n\n", title)
	fmt.Fprintf(w, "| codec | ns | times ours | bar of %.0f | bytes | refuses |\n|---|---|---|---|---|---|\n", bar)
	for i, r := range rows {
		times, kept := "-", "-"
		if i > 0 {
			times = fmt.Sprintf("%.2f (%.2f–%.2f)", r.Times, r.Quarter, r.ThreeQuarters)
		}
		switch {
		case i == 0 || r.Name == codecs.Yardstick:
		case r.Times < bar:
			kept = "**missed**"
		default:
			kept = "kept"
		}
		fmt.Fprintf(w, "| %s | %.1f | %s | %s | %d | %s |\n", r.Name, r.Nanos, times, kept, r.Bytes, r.Checks)
	}
	fmt.Fprintln(w)
}
