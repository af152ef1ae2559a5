package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/stratalog/stratalog/perf/load"
)

// What an InputError may wrap.
var (
	// ErrNotRun says that a JSON value is no run.
	ErrNotRun = errors.New("not a run")
	// ErrImpossible says that a number of a run cannot be: a count or a time below
	// 0, a percentile below a lower one, a figure beyond all measure.
	ErrImpossible = errors.New("impossible number")
	// ErrSchema says that a run is of a schema that is not known here.
	ErrSchema = errors.New("unknown schema")
	// ErrTruncated says that the text ends within a value.
	ErrTruncated = errors.New("the text ends within a JSON value")
	// ErrEmpty says that there is nothing in a file.
	ErrEmpty = errors.New("nothing in it")
)

// InputError says where an input is not what it should be.
type InputError struct {
	File string
	// Offset is the byte where the trouble is, Line its line, from 1.
	Offset int64
	Line   int
	Err    error
}

// Error names the place and the cause.
func (e *InputError) Error() string {
	return fmt.Sprintf("%s: line %d, byte %d: %v", e.File, e.Line, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// maxInput bounds an input file, which is held in memory.
const maxInput = 256 << 20

// Source is a run and where it came from.
type Source struct {
	File string
	Run  load.Run
	// Raw is the run as it was read, with what this program does not know.
	Raw json.RawMessage
}

// Distinct returns the runs without those that are there before, number for
// number, and how many these were: a run that is given twice is no repeat.
func Distinct(sources []Source) (kept []Source, again int) {
	seen := map[string]bool{}
	for _, s := range sources {
		if key := string(s.Raw); key != "" {
			if seen[key] {
				again++
				continue
			}
			seen[key] = true
		}
		kept = append(kept, s)
	}
	return kept, again
}

// ReadRuns reads the runs of a file: JSON objects one after the other, with or
// without lines, or an array of them. Its error is an *InputError unless r
// failed.
func ReadRuns(name string, r io.Reader) ([]Source, error) {
	text, err := readAll(name, r)
	if err != nil {
		return nil, err
	}
	p := runParser{name: name, text: text}
	if err := p.stream(); err != nil {
		return nil, err
	}
	if len(p.found) == 0 {
		return nil, p.bad(int64(len(text)), ErrEmpty)
	}
	return p.found, nil
}

func readAll(name string, r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxInput {
		return nil, &InputError{File: name, Offset: maxInput, Line: lineAt(text, maxInput), Err: fmt.Errorf("more than %d MiB", maxInput>>20)}
	}
	return bytes.TrimPrefix(text, []byte("\uFEFF")), nil
}

// lineAt returns the line of byte offset, from 1.
func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte{'\n'})
}

// runParser takes the runs out of a text.
type runParser struct {
	name  string
	text  []byte
	found []Source
}

func (p *runParser) bad(offset int64, err error) error {
	offset = min(max(offset, 0), int64(len(p.text)))
	return &InputError{File: p.name, Offset: offset, Line: lineAt(p.text, offset), Err: err}
}

// stream takes values until the text ends.
func (p *runParser) stream() error {
	dec := json.NewDecoder(bytes.NewReader(p.text))
	for {
		start := p.skip(dec.InputOffset())
		if start == int64(len(p.text)) {
			return nil
		}
		if p.text[start] == '[' {
			if err := p.array(dec); err != nil {
				return err
			}
			continue
		}
		if err := p.value(dec, start); err != nil {
			return err
		}
	}
}

// array takes the values of an array.
func (p *runParser) array(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return p.syntax(dec, err)
	}
	for dec.More() {
		if err := p.value(dec, p.skip(dec.InputOffset())); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return p.syntax(dec, err)
	}
	return nil
}

// skip returns where the next value starts.
func (p *runParser) skip(offset int64) int64 {
	for offset < int64(len(p.text)) && bytes.IndexByte([]byte(" \t\r\n,"), p.text[offset]) >= 0 {
		offset++
	}
	return offset
}

// syntax says where the text is no JSON.
func (p *runParser) syntax(dec *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return p.bad(int64(len(p.text)), ErrTruncated)
	case errors.As(err, &syntax):
		return p.bad(syntax.Offset-1, err)
	}
	return p.bad(dec.InputOffset(), err)
}

// value takes one run, which starts at start.
func (p *runParser) value(dec *json.Decoder, start int64) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return p.syntax(dec, err)
	}
	var probe struct {
		Schema   *json.RawMessage `json:"schema"`
		Engine   *json.RawMessage `json:"engine"`
		Workload *json.RawMessage `json:"workload"`
	}
	if err := json.Unmarshal(raw, &probe); err != nil {
		return p.bad(start, fmt.Errorf("%w: no JSON object", ErrNotRun))
	}
	switch {
	case probe.Schema == nil:
		return p.bad(start, fmt.Errorf("%w: it has no schema", ErrNotRun))
	case string(*probe.Schema) != fmt.Sprint(load.Schema):
		return p.bad(start, fmt.Errorf("%w %s; this program reads %d", ErrSchema, abridge(string(*probe.Schema)), load.Schema))
	case probe.Engine == nil || probe.Workload == nil:
		return p.bad(start, fmt.Errorf("%w: it has no engine or no workload", ErrNotRun))
	}
	source := Source{File: p.name, Raw: compact(raw)}
	if err := json.Unmarshal(raw, &source.Run); err != nil {
		offset := start
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			offset = start + kind.Offset - 1
		}
		return p.bad(offset, fmt.Errorf("%w: %w", ErrNotRun, err))
	}
	if err := possible(&source.Run); err != nil {
		return p.bad(start, err)
	}
	p.found = append(p.found, source)
	return nil
}

// compact takes the white space out of valid JSON.
func compact(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// abridge keeps a text that came from a file short enough for a message.
func abridge(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
