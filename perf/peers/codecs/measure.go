package codecs

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The bars: how many times longer than we the others must take.
const (
	EncodeBar = 2.0
	DecodeBar = 3.0
)

// Row is what was measured of one way.
type Row struct {
	// Name and Checks are those of the way.
	Name, Checks string
	// Nanos is the median time for one record, in nanoseconds.
	Nanos float64
	// Times says how many times as long as our way it took in the same round: the
	// median and the quartiles.
	Times, Quarter, ThreeQuarters float64
	// Bytes is the mean size of an encoded record.
	Bytes int
}

// Result is the measurement of all ways on records with bodies of one size.
type Result struct {
	Body           int
	Encode, Decode []Row
}

// way is one way of either kind, ready to run over a batch.
type way struct {
	row  Row
	pass func() error
	// passes make up one turn.
	passes int
	nanos  []float64
}

// Measure runs every way once in each of the rounds, for about that long.
func Measure(body, rounds int, turn time.Duration) (Result, error) {
	rs := Batch(body)
	encoded := map[string][][]byte{}
	var encode, decode []*way
	for _, e := range Encoders() {
		all, err := encodings(e, rs)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", e.Name, err)
		}
		encoded[e.Name] = all
		run := e.Prepare(rs)
		encode = append(encode, &way{row: Row{Name: e.Name, Checks: e.Checks, Bytes: meanSize(all)}, pass: func() error {
			_, err := run()
			return err
		}})
	}
	want := uint64(0)
	for i := range rs {
		want += rs[i].Sum()
	}
	for _, d := range Decoders() {
		run := d.Prepare(encoded[d.From])
		decode = append(decode, &way{row: Row{Name: d.Name, Checks: d.Checks, Bytes: meanSize(encoded[d.From])}, pass: func() error {
			sum, err := run()
			if err == nil && sum != want {
				err = fmt.Errorf("sum %d, not %d", sum, want)
			}
			return err
		}})
	}
	if err := takeTurns(slices.Concat(encode, decode), rounds, turn); err != nil {
		return Result{}, err
	}
	return Result{Body: body, Encode: rowsOf(encode), Decode: rowsOf(decode)}, nil
}

// meanSize is the mean length of all.
func meanSize(all [][]byte) int {
	n := 0
	for _, b := range all {
		n += len(b)
	}
	return n / len(all)
}

// takeTurns fills in the times of ways, in another order each round.
func takeTurns(ways []*way, rounds int, turn time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, w := range ways {
		// The first run warms up and finds how many passes a turn has.
		for w.passes = 1; ; w.passes *= 2 {
			took, err := w.time()
			if err != nil {
				return err
			}
			if took >= turn/2 {
				break
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range rounds {
		for _, i := range rng.Perm(len(ways)) {
			took, err := ways[i].time()
			if err != nil {
				return err
			}
			ways[i].nanos = append(ways[i].nanos, float64(took)/float64(ways[i].passes*BatchSize))
		}
	}
	return nil
}

// time takes one turn.
func (w *way) time() (time.Duration, error) {
	start, err := threadTime()
	if err != nil {
		return 0, err
	}
	for range w.passes {
		if err := w.pass(); err != nil {
			return 0, fmt.Errorf("%s: %w", w.row.Name, err)
		}
	}
	end, err := threadTime()
	return end - start, err
}

// threadTime is the time that the calling thread had a processor, so that what
// else runs on the machine counts less.
func threadTime() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()), err
}

// rowsOf compares ways with the first, which is ours.
func rowsOf(ways []*way) []Row {
	rows := make([]Row, len(ways))
	for i, w := range ways {
		times := make([]float64, len(w.nanos))
		for j := range times {
			times[j] = w.nanos[j] / ways[0].nanos[j]
		}
		rows[i] = w.row
		rows[i].Nanos, rows[i].Times = quantile(w.nanos, 2), quantile(times, 2)
		rows[i].Quarter, rows[i].ThreeQuarters = quantile(times, 1), quantile(times, 3)
	}
	return rows
}

// quantile returns the value that q quarters of x are not above.
func quantile(x []float64, q int) float64 {
	sorted := slices.Sorted(slices.Values(x))
	return sorted[(len(sorted)-1)*q/4]
}
