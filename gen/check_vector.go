package gen

// checkVector resolves the values of a vector.
func (c *checker) checkVector(v *syntaxVector) error {
	r := c.records[v.record.text]
	if r == nil {
		return c.fail(v.record.at, "expected a record of this file, found %q", v.record.text)
	}
	out := &Vector{Doc: v.doc, Name: v.name.text}
	if r.Version != nil {
		out.Version = r.Version.Value.Int64()
	}
	if n := v.version; n != nil {
		if r.Version == nil || n.value.Neg || n.value.Int64() < r.Version.FromVersion || n.value.Int64() > out.Version {
			return c.fail(n.at, "expected a version of %s that can be read, found %s", r.Name, n.value.Text)
		}
		out.Version = n.value.Int64()
	}
	values := v.values
	for _, f := range r.Fields {
		if f.Sum == nil || !f.Sum.Given {
			continue
		}
		if len(values) == 0 || values[0].field.text != "given" || values[0].value.kind != tokenString {
			return c.fail(v.name.at, `expected "given" with the bytes that %s covers as the first value`, f.Name)
		}
		out.Given = []byte(values[0].value.text)
		values = values[1:]
	}
	var err error
	out.Values, err = c.vectorValues(r, out, values)
	r.Vectors = append(r.Vectors, out)
	return err
}

func (c *checker) vectorValues(r *Record, v *Vector, values []syntaxValue) ([]Value, error) {
	var out []Value
	seen, good := map[string]bool{}, true
	for _, x := range values {
		value, err := c.vectorValue(r, v, x)
		if !c.told.add(err) {
			good = false
			continue
		}
		if last := len(out) - 1; value.Field.Kind == KindGroup && last >= 0 && out[last].Field == value.Field {
			out[last].Entries = append(out[last].Entries, value.Entries...)
			continue
		}
		if seen[x.field.text] {
			good = c.told.add(c.fail(x.field.at, "field %q is set twice", x.field.text))
			continue
		}
		seen[x.field.text] = true
		out = append(out, value)
	}
	if !good {
		return nil, errTold
	}
	return out, nil
}

// vectorValue resolves one value. Fields of older versions can be set in a
// vector of such a version only.
func (c *checker) vectorValue(r *Record, v *Vector, x syntaxValue) (Value, error) {
	for _, f := range r.Fields {
		if f.Reserve == x.field.text && f.Reserve != "" && x.value.kind == tokenInt {
			return Value{Field: f, Reserve: true, Num: x.value.number}, nil
		}
		gone := f.Until != 0 && v.Version <= f.Until && f.Measure == MeasureNone && f.Value == nil &&
			f.Kind != KindReserved && f.Kind != KindConstBytes && f.Kind != KindChecksum
		if f.Name != x.field.text || !f.InStruct() && !gone || f.Since > v.Version {
			continue
		}
		out, at := Value{Field: f}, x.value.at
		if x.entry != nil {
			at = x.field.at
		}
		var err error
		switch {
		case f.Kind == KindGroup && x.entry != nil:
			entry, err := c.vectorValues(f.Entry, &Vector{Version: entryVersion(f.Entry)}, x.entry)
			out.Entries = [][]Value{entry}
			return out, err
		case x.entry != nil || f.Kind == KindGroup:
		case f.Int.Bool && f.IsInt() && x.value.kind == tokenIdent && len(x.value.names) == 1:
			if word := x.value.names[0].text; word == "true" || word == "false" {
				out.Num = NumberOf(int64(len("false") - len(word)))
				return out, nil
			}
		case f.IsInt() && !f.Int.Bool && x.value.kind == tokenIdent:
			if out.Num, out.Names = f.namedValue(x.value.names); out.Names != nil {
				return out, nil
			}
		case f.IsInt() && !f.Int.Bool:
			out.Num, err = c.number(x.value, f.Int, f.Int.Name())
			return out, err
		case f.IsBytes() && x.value.kind == tokenString && f.fits(len(x.value.text)):
			out.Bytes = []byte(x.value.text)
			return out, nil
		}
		return Value{}, c.fail(at, "this value does not fit field %q", f.Name)
	}
	return Value{}, c.fail(x.field.at, "expected a field of record %q that can be set, found %q", r.Name, x.field.text)
}

// entryVersion is the version of an entry in a vector: the newest one.
func entryVersion(r *Record) int64 {
	if r.Version == nil {
		return 0
	}
	return r.Version.Value.Int64()
}

// fits says whether n bytes can be the value of the field.
func (f *Field) fits(n int) bool {
	switch f.Kind {
	case KindFixedBytes:
		return n == f.Width
	case KindPadBytes:
		return n <= f.Width
	}
	return true
}

// namedValue returns the value that names stand for, joined if the field has
// flags, and nil if a name is no value of the field.
func (f *Field) namedValue(names []syntaxName) (Number, []*Choice) {
	var sum Number
	var choices []*Choice
	for _, name := range names {
		choice := f.choice(name.text)
		if choice == nil || len(choices) > 0 && (f.Enum == nil || !f.Enum.Flags) {
			return sum, nil
		}
		choices = append(choices, choice)
		sum = Number{choice.Value.Text, choice.Value.Neg, sum.Abs | choice.Value.Abs}
	}
	return sum, choices
}
