package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
)

// field is a part of a record in which a flipped bit must be found, whoever wrote
// it and with or without a checksum over all of it.
type field struct {
	name    string
	at, len int
}

// fieldsOf are those of a record whose hosts are of four bytes.
func fieldsOf(raw []byte) []field {
	all := []field{{"length", 0, 4}, {"magic", 4, 4}, {"body checksum", 8, 4}, {"queue id", 12, 4}, {"queue offset", 20, 8},
		{"physical offset", 28, 8}, {"body length", 84, 4}}
	var v codec.MessageView
	if v.Parse(raw) == nil && len(v.Body()) > 0 {
		all = append(all, field{"body", 88, len(v.Body())})
	}
	return all
}

// TestFlippedBit: verify finds nothing wrong with a directory that Java wrote, says
// of how many records Java left all but the body unchecked, and, after a flipped
// bit, names the file and the place.
func TestFlippedBit(t *testing.T) {
	list, err := filepath.Glob("testdata/*.tar.gz")
	if err != nil || len(list) == 0 {
		t.Fatalf("no golden directories: %v", err)
	}
	for _, archive := range list {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		var g golden
		text, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.gz") + ".json")
		if err = errors.Join(err, json.Unmarshal(text, &g)); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			if err := unpack(archive, dir); err != nil {
				t.Fatal(err)
			}
			opt := stratalog.Options{Dir: dir, SegmentSize: g.SegmentSize, QueueFileSize: g.QueueFileSize, DiskFloor: -1}
			report, found, err := verifyDir(t.Context(), opt)
			if err != nil || report.Faults > 0 || report.Records != int64(len(g.Log)) {
				t.Fatalf("%d records, want %d; %v, %v", report.Records, len(g.Log), found, err)
			}
			switch checks := strings.Contains(name, "checksums"); {
			case checks && report.Unverified != 0:
				t.Errorf("%d records unverified, although each carries a checksum over all of it", report.Unverified)
			case !checks && report.Unverified == 0:
				t.Errorf("none of %d records is unverified, although they carry a checksum over the body alone", report.Records)
			}
			places := []int{0, 1, len(g.Log) / 2, len(g.Log) - 2, len(g.Log) - 1}
			if testing.Short() {
				places = places[3:]
			}
			for _, i := range places {
				flipEach(t, opt, g.Log[i].Phy, g.Unclean && i == len(g.Log)-1)
			}
		})
	}
}

// flipEach flips, one after the other, a bit of each field of the record at phy. At
// the end of a log that was not closed that looks like a torn tail, which is a note.
func flipEach(t *testing.T, opt stratalog.Options, phy int64, tail bool) {
	t.Helper()
	name := filepath.Join(opt.Dir, "commitlog", fmt.Sprintf("%020d", phy/opt.SegmentSize*opt.SegmentSize))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := phy % opt.SegmentSize
	raw := make([]byte, 4096)
	if n, err := f.ReadAt(raw, at); n < 92 {
		t.Fatal(err)
	}
	var v codec.MessageView
	if err := v.Parse(raw); err != nil {
		t.Fatal(err)
	}
	if v.SysFlag()&(codec.SysFlagBornHostV6|codec.SysFlagStoreHostV6) != 0 {
		return // hosts of sixteen bytes
	}
	for _, field := range fieldsOf(raw) {
		for _, bit := range []int{0, 8*field.len/2 + 1, 8*field.len - 1} {
			place := at + int64(field.at+bit/8)
			old := make([]byte, 1)
			if _, err := f.ReadAt(old, place); err != nil {
				t.Fatal(err)
			}
			put := func(b byte) {
				if _, err := f.WriteAt([]byte{b}, place); err != nil {
					t.Fatal(err)
				}
			}
			put(old[0] ^ 0x80>>(bit%8))
			_, found, err := verifyDir(t.Context(), opt)
			put(old[0])
			if err := namesPlace(found, tail, err, name, at, raw); err != nil {
				t.Errorf("bit %d of the %s of the record at %d: %v", bit, field.name, phy, err)
			}
		}
	}
}

// namesPlace wants a fault that names the record at that place of the file, or, as
// a flipped queue or offset in it leaves it whole, the entry that led to it.
func namesPlace(found []stratalog.Finding, tail bool, err error, name string, at int64, raw []byte) error {
	if err != nil {
		return err
	}
	size, _, _ := codec.PeekMessage(raw)
	end := at + int64(size)
	for _, f := range found {
		if f.Severity == stratalog.Note && (!tail || f.Kind != "torn-tail") {
			continue
		}
		if f.File == name && f.Offset >= at && f.Offset < end {
			return nil
		}
		if f.Kind == "wrong-unit" && strings.Contains(f.File, "consumequeue") {
			return nil
		}
	}
	return fmt.Errorf("not found: %+v", found)
}

// verifyDir verifies a directory as the command line does, and returns what it found.
func verifyDir(ctx context.Context, opt stratalog.Options) (stratalog.VerifyReport, []stratalog.Finding, error) {
	r, err := stratalog.OpenReader(ctx, opt, stratalog.ReaderOptions{Salvage: true})
	if err != nil {
		return stratalog.VerifyReport{}, nil, err
	}
	var found []stratalog.Finding
	report, err := r.Verify(ctx, func(f stratalog.Finding) { found = append(found, f) })
	return report, found, errors.Join(err, r.Close())
}
