package gen

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	schemaCount = flag.Int("schemas", 2000, "how many random schemas TestRandomSchemas generates from")
	schemaSeed  = flag.Uint64("seed", 1, "the seed of TestRandomSchemas")
	schemaKeep  = flag.String("keep", "", "the folder in which TestRandomSchemas leaves what it made")
)

// batch is the number of schemas in one package. Many share a link; more would
// not fit into the memory of two compilers at once.
const batch = 100

// TestRandomSchemas generates from random schemas, compiles what comes out, and
// runs the tests in it: random values are encoded and parsed, every truncation
// and every single-bit change is refused or stays in bounds, and nothing
// allocates.
func TestRandomSchemas(t *testing.T) {
	count := *schemaCount
	if testing.Short() {
		count = min(count, 40)
	}
	dir := *schemaKeep
	if dir == "" {
		dir = t.TempDir()
	}
	writeFile(t, filepath.Join(dir, "go.mod"), []byte("module random\n\ngo 1.26\n"))
	r := rand.New(rand.NewPCG(*schemaSeed, 0))
	start := time.Now()
	refused := map[string]int{}
	for made := 0; made < count; {
		pkg := fmt.Sprintf("p%d", made/batch)
		f := &File{Source: "random.layout", Package: pkg}
		var all strings.Builder
		for n := min(batch, count-made); n > 0; {
			name := fmt.Sprintf("R%d", made)
			m := schemaMaker{Rand: r, name: name}
			text := "package " + pkg + "\n" + m.schema()
			one, err := Parse(name, text)
			if err != nil {
				for _, e := range appendError(nil, err) {
					refused[e.Msg]++
				}
				continue
			}
			all.WriteString(text)
			f.Enums = append(f.Enums, one.Enums...)
			f.Records = append(f.Records, one.Records...)
			n, made = n-1, made+1
		}
		writeFile(t, filepath.Join(dir, pkg, "schemas.txt"), []byte(all.String()))
		files, err := GenerateFiles([]*File{f})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range files {
			writeFile(t, filepath.Join(dir, pkg, x.Name), x.Source)
		}
	}
	generated := time.Since(start)
	runGo(t, dir, "test", "-vet=off", "-trimpath", "./...")
	total := 0
	for _, n := range refused {
		total += n
	}
	t.Logf("%d schemas (%d more were refused for %d reasons): generated in %v, tested in %v",
		count, total, len(refused), generated, time.Since(start)-generated)
}
