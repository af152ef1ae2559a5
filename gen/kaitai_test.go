package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
)

// parseSchemas reads and checks the schemas that a pattern names.
func parseSchemas(t testing.TB, pattern string) []*File {
	t.Helper()
	files, err := ParsePackage(readSchemas(t, pattern), "")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goldenIn reads the golden files of a folder.
func goldenIn(dir string) func(string) (string, error) {
	return func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(dir, name+".golden"))
		return string(text), err
	}
}

// describeCodec lists the fields that the codec of a record reads from the front
// of b, and cuts off what stands behind the record.
func describeCodec(t *testing.T, record string, b []byte) (values []fieldValue, infos []codec.FieldInfo, rec []byte) {
	t.Helper()
	i := slices.IndexFunc(codec.Records(), func(r codec.RecordInfo) bool { return r.Name == record })
	if i < 0 {
		t.Fatalf("codec has no %s", record)
	}
	n, err := codec.Records()[i].Describe(b, func(f codec.FieldInfo) bool {
		values = append(values, fieldValue{f.Name, f.Value})
		infos = append(infos, f)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return values, infos, b[:n]
}

// vectorsOf calls do with the bytes of every vector.
func vectorsOf(t *testing.T, files []*File, dir string, do func(f *File, r *Record, v *Vector, b []byte)) {
	t.Helper()
	golden := goldenIn(dir)
	for _, f := range files {
		for _, r := range f.Records {
			for _, v := range r.Vectors {
				text, err := golden(v.Name)
				if err != nil {
					t.Fatal(err)
				}
				b, err := readHex(text)
				if err != nil {
					t.Fatal(err)
				}
				do(f, r, v, b)
			}
		}
	}
}

// TestKaitaiReadsVectors: parsers made from the Kaitai files read the golden
// bytes of every record, field by field as the generated codecs do, and as the
// layout says where there is no codec in this program.
func TestKaitaiReadsVectors(t *testing.T) {
	needNode(t)
	dir := t.TempDir()
	for _, set := range []struct {
		pattern, golden string
		codecs          bool
	}{{"../codec/*.layout", "../codec/testdata", true}, {"testdata/*.layout", "testdata", false}} {
		files := parseSchemas(t, set.pattern)
		names := map[*File]*kaitaiNames{}
		schema := map[*File]string{}
		for _, f := range files {
			names[f] = newKaitaiNames(f)
			out, err := Kaitai(f)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, out.Name), out.Source)
			schema[f] = strings.TrimSuffix(out.Name, ".ksy")
		}
		var jobs []job
		var checks []func(a answer)
		vectorsOf(t, files, set.golden, func(f *File, r *Record, v *Vector, b []byte) {
			jobs = append(jobs, job{Schema: schema[f], Type: names[f].records[r], Hex: fmt.Sprintf("%x", b)})
			checks = append(checks, func(a answer) {
				if a.Error != "" || a.Left != 0 {
					t.Errorf("%s: %d bytes left, %s", v.Name, a.Left, a.Error)
					return
				}
				pieces, _, err := r.Cut(b)
				if err != nil {
					t.Fatal(err)
				}
				want := flatten("", pieces)
				if set.codecs {
					var rec []byte
					if want, _, rec = describeCodec(t, r.Name, b); len(rec) != len(b) {
						t.Errorf("%s: the codec reads %d of %d bytes", v.Name, len(rec), len(b))
					}
				}
				k := &kaitaiReader{t, names[f]}
				sameFields(t, v.Name, flatten("", k.pieces(r, a.Value)), want)
			})
		})
		for i, a := range runKaitai(t, []string{dir}, jobs) {
			checks[i](a)
		}
		if len(checks) == 0 {
			t.Errorf("no vectors in %s", set.pattern)
		}
		t.Logf("%s: %d vectors", set.pattern, len(checks))
	}
}

// TestKaitaiCompiles: the compiler takes the Kaitai files, those that are
// written by hand too, for every language that it knows.
func TestKaitaiCompiles(t *testing.T) {
	needNode(t)
	files, err := filepath.Glob(ksyFolder + "/*.ksy")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var jobs []job
	for _, f := range files {
		jobs = append(jobs, job{Schema: strings.TrimSuffix(filepath.Base(f), ".ksy"), Languages: true})
	}
	for i, a := range runKaitai(t, []string{ksyFolder}, jobs) {
		text, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if refused := a.refused(text); a.Error != "" || len(refused) > 0 || len(a.Languages) < 10 {
			t.Errorf("%s: %v %v %s", files[i], a.Languages, refused, a.Error)
		}
	}
}

// TestKaitaiRefuses: what a record must not be, Kaitai refuses as far as it can.
func TestKaitaiRefuses(t *testing.T) {
	needNode(t)
	golden := func(name string) []byte {
		text, err := goldenIn("../codec/testdata")(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := readHex(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var jobs []job
	var whats []string
	try := func(what, schema, typ string, b []byte, at int, value byte) {
		b = slices.Clone(b)
		b[at] = value
		jobs = append(jobs, job{Schema: schema, Type: typ, Hex: fmt.Sprintf("%x", b)})
		whats = append(whats, what)
	}
	message, bound := golden("message_v1"), golden("bound")
	try("a magic that is none", "message_records", "message", message, 7, 0)
	try("a body beyond the end", "message_records", "message", message, 0x56, 0x7f)
	try("a negative length", "message_records", "message", message, 0x5d, 0xff)
	try("a total below the smallest", "message_records", "message", message, 3, 20)
	try("a blank that is none", "message_records", "blank", golden("blank"), 4, 0)
	try("a newer version", "sidecar_records", "bound", bound, 5, 2)
	try("reserved bytes", "sidecar_records", "bound", bound, 6, 1)
	try("a negative bound", "sidecar_records", "bound", bound, 0x14, 0xff)
	for i, a := range runKaitai(t, []string{ksyFolder}, jobs) {
		if a.Error == "" {
			t.Errorf("%s is read", whats[i])
		}
	}
}
