package gen

import "strings"

// checkRecord checks a record. If it is wrong its name is lost.
func (c *checker) checkRecord(r *syntaxRecord) (*Record, error) {
	what := "record"
	if r.key {
		what = "key"
	}
	rc := &recordChecker{
		checker: c, record: &Record{Doc: r.doc, Name: r.name, Where: r.at, Key: r.key},
		byName: map[string]*Field{}, methods: map[string]bool{}, lostFields: map[string]bool{},
	}
	for _, name := range viewMethods {
		rc.methods[name] = true
	}
	err := c.declare(what, r.doc, r.name, r.at)
	if err == nil {
		err = rc.check(r)
	}
	if err == nil {
		err = rc.takeNames(what)
	}
	if !c.told.add(err) {
		c.lost[r.name] = true
		return nil, errTold
	}
	c.records[r.name] = rc.record
	c.out.Records = append(c.out.Records, rc.record)
	return rc.record, nil
}

// takeNames takes the Go names that follow from the record's.
func (c *recordChecker) takeNames(what string) error {
	r := c.record
	for _, suffix := range []string{"View", "MinSize", "Size", "Views"} {
		if err := c.take(r.Where, r.Name+suffix, what+" "+r.Name); err != nil {
			return err
		}
	}
	for _, f := range r.Fields {
		if f.hasOffset() {
			if err := c.take(f.Where, r.offsetName(f), "field "+f.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *recordChecker) check(r *syntaxRecord) error {
	if len(r.fields) == 0 {
		return c.fail(r.at, "record %q has no fields", r.name)
	}
	good := true
	for _, f := range r.fields {
		var field *Field
		err := errTold
		if !c.hangsOnLost(f) {
			field, err = c.checkField(f)
		}
		if !c.told.add(err) {
			good = false
			c.lostFields[f.name.text] = true
			c.lostVersion = c.lostVersion || f.role.text == "version"
			continue
		}
		c.record.Fields = append(c.record.Fields, field)
		c.syntax = append(c.syntax, f)
		if field.Kind != KindReserved {
			c.byName[field.Name] = field
		}
	}
	for _, step := range []func() error{c.resolveMeasures, c.resolveSums, c.checkRest} {
		good = c.told.add(step()) && good
	}
	if !good {
		return errTold
	}
	return c.checkWhole(r)
}

// checkWhole checks what shows when all fields are known.
func (c *recordChecker) checkWhole(r *syntaxRecord) error {
	if c.at.Anchor == 0 {
		c.record.Size = c.at.Off
		if t := c.record.Total; t != nil && uint64(c.at.Off) > t.Int.Max().Abs {
			return c.fail(t.Where, "the record has %d bytes, which do not fit into its total", c.at.Off)
		}
	} else if f := c.byName["Size"]; f != nil && f.InStruct() {
		return c.fail(r.at, "a field of a record without a fixed size must not be called Size")
	}
	if r.key {
		return c.checkKey()
	}
	return nil
}

// hangsOnLost says whether a field names a field, an enum or a record that is
// wrong, or is of some versions of a record whose version is: what would be said
// of it may only follow from that.
func (c *recordChecker) hangsOnLost(f *syntaxField) bool {
	if (f.since != nil || f.until != nil) && c.lostVersion {
		return true
	}
	if _, known := intType(f.typ.text, c.little); f.role.text == "" && f.typ.text != "bytes" && f.typ.text != "text" && !known && c.isLost(f.typ.text) {
		return true
	}
	if g := f.group; g != nil && (g.entry != nil && g.inline == nil && c.isLost(g.entry.text) || g.field != nil && c.lostFields[g.field.text]) {
		return true
	}
	conds := []*syntaxCond{f.cond}
	if f.width != nil {
		conds = append(conds, f.width.cond)
		if f.width.field != nil && c.lostFields[f.width.field.text] {
			return true
		}
	}
	if f.prefix != nil {
		conds = append(conds, f.prefix.cond)
	}
	for _, x := range conds {
		if x != nil && c.lostFields[x.field.text] {
			return true
		}
	}
	return false
}

// checkMagics refuses a magic that does not tell a record from another one of the
// file. An entry of a group stands where only such entries do.
func (c *checker) checkMagics() error {
	good := true
	for i, r := range c.out.Records {
		for _, other := range c.out.Records[:i] {
			if r.Entry || other.Entry || r.Magic == nil || other.Magic == nil || r.Magic.At != other.Magic.At {
				continue
			}
			for _, x := range r.Magic.magics() {
				for _, y := range other.Magic.magics() {
					if a, b := r.Magic.Int.toBytes(x.Value), other.Magic.Int.toBytes(y.Value); strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
						good = c.told.add(c.fail(x.Where, "expected a magic that tells %s from %s, found %s, with which both begin at byte %d",
							r.Name, other.Name, x.Value.Text, r.Magic.At.Off)) && good
					}
				}
			}
		}
	}
	if !good {
		return errTold
	}
	return nil
}

// magics returns the values of a magic.
func (f *Field) magics() []*Choice {
	if f.Value != nil {
		return []*Choice{{Name: f.Name, Where: f.Where, Value: *f.Value}}
	}
	return f.Choices
}
