package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// flatten lists the fields of a JSON value by their path, in its order. Long
// lists of points are counted, not listed.
func flatten(raw []byte) []field { return flattenTo(raw, mostDepth) }

// mostDepth is how deep fields are listed; what lies deeper is one value.
const mostDepth = 8

func flattenTo(raw []byte, depth int) []field {
	if depth == 0 {
		return []field{{"", abridge(string(raw))}}
	}
	f := flattener{dec: json.NewDecoder(bytes.NewReader(raw)), depth: depth}
	f.dec.UseNumber()
	if f.value("") != nil {
		return nil // it was read before, so it is valid
	}
	return f.fields
}

type flattener struct {
	dec    *json.Decoder
	fields []field
	depth  int
}

func (f *flattener) put(path, value string) { f.fields = append(f.fields, field{path, value}) }

// value lists the next value of the stream.
func (f *flattener) value(path string) error {
	token, err := f.dec.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return f.object(path)
		}
		return f.list(path)
	case nil:
		f.put(path, "null")
	default:
		f.put(path, fmt.Sprint(t))
	}
	return nil
}

func (f *flattener) object(path string) error {
	for f.dec.More() {
		name, err := f.dec.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := f.dec.Decode(&raw); err != nil {
			return err
		}
		for _, one := range flattenTo(raw, f.depth-1) {
			f.put(under(path, fmt.Sprint(name), one.name), one.value)
		}
	}
	_, err := f.dec.Token()
	return err
}

// under joins the parts of a path, empty ones left out.
func under(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ".")
}

// list names the objects of a list by their name, if they have one.
func (f *flattener) list(path string) error {
	points := 0
	for i := 0; f.dec.More(); i++ {
		var raw json.RawMessage
		if err := f.dec.Decode(&raw); err != nil {
			return err
		}
		var named struct {
			Name  *string `json:"name"`
			Value *string `json:"value"`
		}
		switch err := json.Unmarshal(raw, &named); {
		case err == nil && named.Name != nil && named.Value != nil:
			f.put(under(path, *named.Name), *named.Value)
		case err == nil && named.Name != nil:
			for _, one := range flattenTo(raw, f.depth-1) {
				if one.name != "name" {
					f.put(under(path, *named.Name, one.name), one.value)
				}
			}
		case len(raw) > 0 && raw[0] == '{':
			points++
		default:
			for _, one := range flattenTo(raw, f.depth-1) {
				f.put(under(path, fmt.Sprint(i+1), one.name), one.value)
			}
		}
	}
	if points > 0 {
		f.put(path, fmt.Sprintf("%d points", points))
	}
	_, err := f.dec.Token()
	return err
}

// rawTable has every field of every run: one row a field, one column a run;
// what is the same in all runs is said once.
func rawTable(runs []*run) table {
	t := table{Head: []headCell{{Name: "field", Text: true}}}
	columns := make([]map[string]string, len(runs))
	var names []string
	known := map[string]bool{}
	for i, r := range runs {
		t.Head = append(t.Head, headCell{Name: fmt.Sprintf("run %d", r.number), Note: r.file})
		columns[i] = map[string]string{}
		at := 0 // where a field that is new goes: behind the one before it
		for _, f := range flatten(r.raw) {
			columns[i][f.name] = f.value
			if known[f.name] {
				at = slices.Index(names, f.name) + 1
				continue
			}
			known[f.name] = true
			names = slices.Insert(names, min(at, len(names)), f.name)
			at++
		}
	}
	for _, name := range names {
		row := tableRow{Cells: []tableCell{{Text: name, Word: true}}}
		values := make([]string, len(runs))
		for i := range runs {
			v, ok := columns[i][name]
			if !ok {
				v = none
			}
			values[i] = v
		}
		if len(runs) > 1 && !differ(values) {
			row.Cells = append(row.Cells, tableCell{Text: values[0], Word: true, Span: len(runs)})
			values = nil
		}
		for _, v := range values {
			row.Cells = append(row.Cells, tableCell{Text: v})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
