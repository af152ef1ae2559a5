package omb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds a workload file in bytes; a common one has less than 1000.
const maxFile = 1 << 20

// Read reads a workload file. Its error is an *Error.
func Read(path string) (*Workload, error) {
	data, err := readFile(path, maxFile)
	if err != nil {
		return nil, &Error{File: path, Cause: err}
	}
	return Parse(path, data)
}

// readFile reads a file of at most limit bytes. The errors do not name it.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, bare(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("the file is larger than %d bytes", limit)
	}
	return data, nil
}

// bare takes the path off an error.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Parse reads a workload out of data. name is the file that it came from; it is
// part of errors, and PayloadFile is relative to its folder. Its error is an
// *Error.
func Parse(name string, data []byte) (*Workload, error) {
	root, err := document(name, data)
	if err != nil {
		return nil, err
	}
	w := defaults(name)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if err := w.take(key, value); err != nil {
			return nil, err
		}
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	return w, nil
}

// document returns the mapping that the one document of data is.
func document(name string, data []byte) (*yaml.Node, error) {
	if err := readable(data); err != nil {
		err.File = name
		return nil, err
	}
	l, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, &Error{File: name, Cause: err}
	}
	var doc, second yaml.Node
	err = l.Load(&doc)
	if err == io.EOF || err == nil && isNothing(&doc) {
		return nil, &Error{File: name, Cause: errors.New("the file holds no workload")}
	}
	if err == nil {
		err = l.Load(&second)
	}
	switch {
	case err == nil:
		return nil, &Error{File: name, Line: second.Line, Cause: errors.New("a second document; a workload file holds one")}
	case err != io.EOF:
		return nil, syntax(name, err)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, &Error{File: name, Line: root.Line, Cause: fmt.Errorf("want fields and their values, got %s", describe(root))}
	}
	return root, nil
}

// readable finds what is no text: the decoder knows no line for it.
func readable(data []byte) *Error {
	line := 1
	for i := 0; i < len(data); {
		c, n := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			return &Error{Line: line, Cause: fmt.Errorf("byte 0x%02x is not UTF-8 text", data[i])}
		case c == '\n':
			line++
		case unicode.IsControl(c) && c != '\t' && c != '\r':
			return &Error{Line: line, Cause: fmt.Errorf("control character %U", c)}
		}
		i += n
	}
	return nil
}

// isNothing reports whether a document has no content, or null.
func isNothing(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].ShortTag() == "!!null"
}

// syntax turns an error of the decoder into one of this package.
func syntax(name string, err error) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return &Error{File: name, Cause: err}
	}
	return &Error{File: name, Line: e.Mark.Line, Cause: errors.New(e.Message)}
}

// take sets the field that key names.
func (w *Workload) take(key, value *yaml.Node) error {
	fail := func(cause error) error {
		return &Error{File: w.file, Line: key.Line, Field: key.Value, Cause: cause}
	}
	if key.Kind != yaml.ScalarNode {
		return fail(fmt.Errorf("want the name of a field, got %s", describe(key)))
	}
	f, ok := fieldOf(key.Value)
	if !ok {
		if near := nearest(key.Value); near != "" {
			return fail(fmt.Errorf("unknown field; did you mean %s?", near))
		}
		return fail(errors.New("unknown field"))
	}
	if before, ok := w.lines[f.name]; ok {
		return fail(fmt.Errorf("given twice; line %d has it already", before))
	}
	w.lines[f.name] = key.Line
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if err := f.set(w, value); err != nil {
		return fail(err)
	}
	return nil
}

// check checks what is missing, and the fields that depend on each other.
func (w *Workload) check() error {
	for _, f := range fields {
		if f.needed && w.lines[f.name] == 0 {
			return w.wrong(f.name, "missing; at least 1 is needed")
		}
	}
	if w.UseRandomizedPayloads && w.RandomizedPayloadPoolSize == 0 {
		return w.wrong("useRandomizedPayloads", "randomizedPayloadPoolSize is 0; at least 1 is needed")
	}
	if w.SubscriptionsPerTopic > 0 && w.ConsumerPerSubscription == 0 {
		return w.wrong("subscriptionsPerTopic", "consumerPerSubscription is 0; at least 1 is needed")
	}
	if w.ConsumerBacklogSizeGB > 0 && w.ProducerRate == 0 {
		return w.wrong("consumerBacklogSizeGB", "producerRate is 0; no backlog can be built while the highest rate is sought")
	}
	for _, p := range []struct {
		field, what string
		factors     []int
	}{
		{"partitionsPerTopic", "queues", []int{w.Topics, w.PartitionsPerTopic}},
		{"producersPerTopic", "producers", []int{w.Topics, w.ProducersPerTopic}},
		{"subscriptionsPerTopic", "subscriptions", []int{w.Topics, w.SubscriptionsPerTopic}},
		{"consumerPerSubscription", "consumers", []int{w.Topics, w.SubscriptionsPerTopic, w.ConsumerPerSubscription}},
	} {
		product := int64(1)
		for _, n := range p.factors {
			if product *= int64(n); product > maxCount {
				return w.wrong(p.field, "more than %d %s in all", maxCount, p.what)
			}
		}
	}
	return nil
}

// wrong returns the error of a field.
func (w *Workload) wrong(field, format string, args ...any) error {
	return &Error{File: w.file, Line: w.lines[field], Field: field, Cause: fmt.Errorf(format, args...)}
}
