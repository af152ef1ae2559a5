package gen

import (
	"fmt"
	"strconv"
	"strings"
)

// goName returns the struct field that the value is for.
func (x Value) goName() string {
	if x.Reserve {
		return x.Field.Reserve
	}
	return x.Field.Name
}

// valueExpr prints the value as Go.
func (r *Record) valueExpr(x Value) string {
	f := x.Field
	switch {
	case x.Reserve:
		return x.Num.Text
	case f.Kind == KindGroup:
		var b strings.Builder
		fmt.Fprintf(&b, "[]%s{", f.Entry.Name)
		for _, entry := range x.Entries {
			b.WriteString("{")
			for i, v := range entry {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%s: %s", v.goName(), f.Entry.valueExpr(v))
			}
			b.WriteString("}, ")
		}
		b.WriteString("}")
		return b.String()
	case f.Kind == KindFixedBytes:
		return fmt.Sprintf("[%d]byte([]byte(%s))", f.Width, strconv.Quote(string(x.Bytes)))
	case f.IsBytes():
		return fmt.Sprintf("[]byte(%s)", strconv.Quote(string(x.Bytes)))
	case f.Int.Bool:
		return strconv.FormatBool(x.Num.Abs == 1)
	case x.Names != nil:
		var names []string
		for _, c := range x.Names {
			names = append(names, r.choiceName(f, c))
		}
		return strings.Join(names, "|")
	}
	return x.Num.Text
}
