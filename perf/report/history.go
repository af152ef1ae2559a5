package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrNotBaseline says that a line of a history is no accepted baseline.
var ErrNotBaseline = errors.New("not an accepted baseline")

// Baseline is one line of a history, as docs/GATE.md describes it: what was
// measured when a commit was accepted as the next one to compare with.
type Baseline struct {
	Commit string `json:"commit"`
	// Base is the commit that it was compared with.
	Base string    `json:"base"`
	Date time.Time `json:"date"`

	Go     string `json:"go"`
	CPU    string `json:"cpu"`
	Kernel string `json:"kernel"`

	// Reason says why a regression was accepted, if there was one.
	Reason     string           `json:"reason,omitempty"`
	Benchmarks []BaselineResult `json:"benchmarks"`
}

// BaselineResult is one benchmark and unit of a baseline.
type BaselineResult struct {
	Benchmark string  `json:"benchmark"`
	Unit      string  `json:"unit"`
	Base      float64 `json:"base"`
	Head      float64 `json:"head"`
	// Ratio compares Head with Base; nil if Base alone is 0.
	Ratio *float64 `json:"ratio"`
	// From and To are the interval that the ratio lies in, nil if it was not
	// judged by pairs or the line is older than they are; so is an empty
	// Verdict. Others are same, better, worse and undecided.
	From    *float64 `json:"from,omitempty"`
	To      *float64 `json:"to,omitempty"`
	Verdict string   `json:"verdict,omitempty"`
}

// undecided tells that the gate could not say what the ratio is: it may be
// chance.
func (b *BaselineResult) undecided() bool { return b.Verdict == "undecided" }

// ReadHistory reads a history, one JSON object a line; fields that are not known
// here are passed over. Its error is an *InputError unless r failed.
func ReadHistory(name string, r io.Reader) ([]Baseline, error) {
	text, err := readAll(name, r)
	if err != nil {
		return nil, err
	}
	var found []Baseline
	offset, number := int64(0), 0
	for line := range bytes.Lines(text) {
		number++
		at := offset
		offset += int64(len(line))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		b, err := parseBaseline(line)
		if err != nil {
			var syntax *json.SyntaxError
			var kind *json.UnmarshalTypeError
			switch {
			case errors.As(err, &syntax):
				at += max(syntax.Offset-1, 0)
			case errors.As(err, &kind):
				at += max(kind.Offset-1, 0)
			}
			return nil, &InputError{File: name, Offset: at, Line: number, Err: err}
		}
		found = append(found, b)
	}
	if len(found) == 0 {
		return nil, &InputError{File: name, Line: max(number, 1), Offset: int64(len(text)), Err: ErrEmpty}
	}
	return found, nil
}

func parseBaseline(line []byte) (Baseline, error) {
	var b Baseline
	if err := json.Unmarshal(line, &b); err != nil {
		return b, fmt.Errorf("%w: %w", ErrNotBaseline, err)
	}
	switch {
	case b.Commit == "":
		return b, fmt.Errorf("%w: no commit", ErrNotBaseline)
	case b.Date.IsZero():
		return b, fmt.Errorf("%w: no date", ErrNotBaseline)
	}
	for i, r := range b.Benchmarks {
		if r.Benchmark == "" {
			return b, fmt.Errorf("%w: entry %d names no benchmark", ErrNotBaseline, i+1)
		}
	}
	return b, nil
}
