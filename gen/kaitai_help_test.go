package gen

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// ksyFolder holds the Kaitai files that are checked in.
const ksyFolder = "../docs/format/ksy"

// job is one thing that kaitai/read.js does.
type job struct {
	Schema    string `json:"schema"`
	Type      string `json:"type,omitempty"`
	Hex       string `json:"hex,omitempty"`
	File      string `json:"file,omitempty"`
	Languages bool   `json:"languages,omitempty"`
}

// answer is what came of a job.
type answer struct {
	Left      int
	Value     map[string]any
	Languages []string
	Refused   []string
	Error     string
}

// refused returns which languages a schema cannot be compiled for, and why. The
// compiler has no checks by an expression for Nim yet, and refuses them.
func (a answer) refused(ksy []byte) []string {
	var out []string
	for _, why := range a.Refused {
		if !strings.HasPrefix(why, "nim: ") || !bytes.Contains(ksy, []byte(" expr: '")) {
			out = append(out, why)
		}
	}
	return out
}

// needNode skips the test where Node.js is missing, and returns the folder with
// the packages of kaitai/package-lock.json, which are fetched once.
func needNode(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT CHECKED: that an independent decoder agrees with the codecs. %s is missing; "+
				"install the Debian packages nodejs and npm", tool)
		}
	}
	lock, err := os.ReadFile("kaitai/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("kaitai/node_modules/.package-lock.json"); err == nil {
		return "kaitai/node_modules" // somebody who works on this has run npm
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "stratalog-kaitai", fmt.Sprintf("%x", sha256.Sum256(lock))[:16])
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), "new")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join("kaitai", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(work, name), content)
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	if err := os.Rename(work, dir); err != nil {
		if _, there := os.Stat(modules); there != nil { // another test was faster
			t.Fatal(err)
		}
	}
	return modules
}

// runKaitai runs jobs with the schemas in folders.
func runKaitai(t *testing.T, folders []string, jobs []job) []answer {
	t.Helper()
	modules, err := filepath.Abs(needNode(t))
	if err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(map[string]any{"folders": folders, "jobs": jobs})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "kaitai/read.js")
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	cmd.Stdin = bytes.NewReader(request)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v\n%s", err, stderr.Bytes())
	}
	var answers []answer
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&answers); err != nil || len(answers) != len(jobs) {
		t.Fatalf("%d answers for %d jobs, %v", len(answers), len(jobs), err)
	}
	return answers
}

// fieldValue is the name and the value of a field, as FieldInfo of a generated
// package has them.
type fieldValue struct{ name, value string }

// flatten lists fields as Describe does: the entries of a group follow it.
func flatten(prefix string, pieces []Piece) []fieldValue {
	var out []fieldValue
	for _, p := range pieces {
		out = append(out, fieldValue{prefix + p.Field.Name, p.Text()})
		for i, entry := range p.Entries {
			out = append(out, flatten(fmt.Sprintf("%s%s[%d].", prefix, p.Field.Name, i), entry)...)
		}
	}
	return out
}

// kaitaiReader turns what Kaitai read into pieces, and checks what it reckoned.
type kaitaiReader struct {
	t     *testing.T
	names *kaitaiNames
}

// member returns an attribute by its name in the schema.
func member(value map[string]any, id string) (any, bool) {
	parts := strings.Split(id, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	x, ok := value[strings.Join(parts, "")]
	return x, ok
}

func (k *kaitaiReader) pieces(r *Record, value map[string]any) []Piece {
	k.t.Helper()
	ids := k.names.newType(r).ids
	var out []Piece
	for _, f := range r.Fields {
		id := ids[f]
		first := id.id
		if id.raw != "" {
			first = id.raw
		}
		x, there := member(value, first)
		if !there {
			continue
		}
		p := Piece{Field: f}
		switch {
		case f.IsInt():
			p.Num = k.integer(f, id, x, value)
		case f.Kind == KindGroup:
			if m, wrapped := x.(map[string]any); wrapped {
				x = m["entries"]
			}
			list, ok := x.([]any)
			if !ok {
				k.t.Fatalf("%s.%s is %v, no list", r.Name, f.Name, x)
			}
			for _, e := range list {
				entry := e.(map[string]any)
				if f.Entry.Total != nil {
					entry = entry["body"].(map[string]any)
				}
				p.Entries = append(p.Entries, k.pieces(f.Entry, entry))
			}
		default:
			p.Bytes = k.bytes(f, id, x, value)
		}
		out = append(out, p)
	}
	return out
}

func (k *kaitaiReader) bytes(f *Field, id *kaitaiField, x any, value map[string]any) []byte {
	k.t.Helper()
	s, ok := x.(string)
	if !ok {
		k.t.Fatalf("%s is %v, no string", f.Name, x)
	}
	if f.UTF8 && f.Kind != KindConstBytes {
		return []byte(s)
	}
	b, err := hex.DecodeString(s)
	if err != nil {
		k.t.Fatalf("%s: %v", f.Name, err)
	}
	if id.text != "" && utf8.Valid(b) && !bytes.HasPrefix(b, []byte("\ufeff")) {
		if text, _ := member(value, id.text); text != string(b) {
			k.t.Errorf("%s is %q as text, want %q", f.Name, text, b)
		}
	}
	return b
}

// integer returns the value of an integer: from the attribute that was read,
// which is exact. What an instance reckoned from it must be the same, unless it
// is beyond the exact numbers of JavaScript.
func (k *kaitaiReader) integer(f *Field, id *kaitaiField, x any, value map[string]any) Number {
	k.t.Helper()
	var n Number
	var err error
	switch {
	case id.raw == "":
		n = parseInteger(k.t, f.Name, x)
	case f.Int.Decimal:
		n, err = f.Int.decode([]byte(x.(string)))
	default:
		var bits uint64
		if id.halves {
			m := x.(map[string]any)
			bits = parseInteger(k.t, f.Name, m["hi"]).Abs<<32 | parseInteger(k.t, f.Name, m["lo"]).Abs
		} else {
			bits = parseInteger(k.t, f.Name, x).Abs
		}
		b := make([]byte, 8)
		for i := range b {
			b[7-i] = byte(bits >> (8 * i))
		}
		t := f.Int
		t.Little = false
		n, err = t.decode(b[8-t.Bytes:])
	}
	if err != nil {
		k.t.Fatalf("%s: %v", f.Name, err)
	}
	if id.raw != "" {
		y, _ := member(value, id.id)
		if y != "inexact" && parseInteger(k.t, id.id, y).Cmp(n) != 0 || y == "inexact" && n.Abs < 1<<53 {
			k.t.Errorf("%s is %v as an instance, want %s", f.Name, y, n)
		}
	}
	for i, name := range id.flags {
		k.flag(f, name, f.Enum.Values[i], n, value)
	}
	return n
}

// flag checks the instance for one value of flags.
func (k *kaitaiReader) flag(f *Field, id string, c *Choice, n Number, value map[string]any) {
	k.t.Helper()
	mask := f.Int.bits(c.Value)
	bits := f.Int.bits(n) & mask
	x, there := member(value, id)
	switch got := x.(type) {
	case bool:
		if mask&(mask-1) == 0 && got == (bits != 0) {
			return
		}
	case json.Number:
		m := parseInteger(k.t, id, x) // with bit 31 JavaScript makes it negative
		if there && (uint64(m.Int64())^bits)&mask == 0 {
			return
		}
	}
	k.t.Errorf("%s of %s = %s is %v", id, f.Name, n, x)
}

func parseInteger(t *testing.T, name string, x any) Number {
	t.Helper()
	n, ok := parseNumber(fmt.Sprint(x))
	if !ok {
		t.Fatalf("%s is %v, no integer", name, x)
	}
	return n
}

// sameFields fails the test unless two lists of fields are equal.
func sameFields(t *testing.T, what string, got, want []fieldValue) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: Kaitai has no %s = %s", what, want[i].name, want[i].value)
		case i >= len(want):
			t.Errorf("%s: Kaitai has %s = %s, which is not there", what, got[i].name, got[i].value)
		case got[i] != want[i]:
			t.Errorf("%s: Kaitai reads %s = %s, want %s = %s", what, got[i].name, got[i].value, want[i].name, want[i].value)
		}
	}
}
