package cq

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

const testRoot = "/store/consumequeue"

// TestGoldenBytes compares a file with bytes written down by hand.
func TestGoldenBytes(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, Options{FileSize: 95}) // Rounded up to 100: five units.
	e := entry{topic: "TopicTest", queue: 3, at: 7, phy: 0x0102030405, tag: "TagA"}
	mustApply(t, s, e)
	got := readAll(t, sim, testRoot+"/TopicTest/3/00000000000000000100")
	e.encode(t)
	want := append(blankUnits(2), 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, byte(e.size))
	// "TagA".hashCode() in Java is 2598919 = 0x27A807.
	tags, err := hex.DecodeString("000000000027a807")
	must(t, err)
	want = append(append(want, tags...), make([]byte, 40)...)
	if !bytes.Equal(got, want) {
		t.Fatalf("got\n%x\nwant\n%x", got, want)
	}
	if lo, hi := s.Min("TopicTest", 3), s.Max("TopicTest", 3); lo != 7 || hi != 8 {
		t.Fatalf("[%d,%d)", lo, hi)
	}
	if s.MaxPhysical() != contract.Offset(e.end()) {
		t.Fatalf("max physical %d", s.MaxPhysical())
	}
	entries, err := sim.ReadDir(testRoot + "/TopicTest/3")
	must(t, err)
	if len(entries) != 1 {
		t.Fatalf("%v", entries)
	}
}

// Records of a Java broker have topics that are longer than those we append to.
func TestTopicsOfTheSecondVersion(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{})
	for _, n := range []int{127, 128, 255} {
		topic := strings.Repeat("r", n)
		mustApply(t, s, entry{topic: topic, phy: int64(n) * 1000})
		if s.Max(topic, 0) != 1 {
			t.Errorf("topic of %d bytes: max %d", n, s.Max(topic, 0))
		}
	}
}

func TestTransactionsWithoutAUnit(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{})
	mustApply(t, s,
		entry{topic: "t", at: 0, phy: 0, flag: codec.SysFlagTransactionPrepared},
		entry{topic: "t", at: 0, phy: 200, flag: codec.SysFlagTransactionRollback})
	if s.Exists("t", 0) || len(s.Topics()) != 0 {
		t.Fatal("a unit was made")
	}
	mustApply(t, s,
		entry{topic: "t", at: 0, phy: 400, flag: codec.SysFlagTransactionCommit},
		entry{topic: "t", at: 1, phy: 600})
	if s.Max("t", 0) != 2 {
		t.Fatalf("max %d", s.Max("t", 0))
	}
}

func TestHostileTopicsAndPlaces(t *testing.T) {
	sim := newSim(t)
	s := mustOpen(t, sim, Options{})
	for _, topic := range []string{
		".", "..", "a/b", "../../etc", "a\\b", "a\x00b", "a\nb", "\x7f", strings.Repeat("x", 127) + "/",
	} {
		e := entry{topic: topic, phy: 1}
		if len(topic) > 127 {
			continue
		}
		if err := e.apply(t, s); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%q: %v", topic, err)
		}
	}
	for _, topic := range [][]byte{nil, bytes.Repeat([]byte("x"), 256)} {
		if err := checkTopic(topic); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%q: %v", topic, err)
		}
	}
	for _, e := range []entry{{topic: "t", queue: -1}, {topic: "t", at: -1}, {topic: "t", at: math.MaxInt64}} {
		if err := e.apply(t, s); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%+v: %v", e, err)
		}
	}
	g := &group{topic: "b", queue: -1, n: 2}
	g.encode(t)
	if err := s.Apply(contract.RecordID{Epoch: 1, Length: int64(g.size)}, &g.rawView); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("a batch: %v", err)
	}
	must(t, s.Commit())
	if _, err := sim.Stat(testRoot); err == nil {
		t.Fatal("something was made")
	}
}

// TestLargestPlace: the last number that a queue takes can be read, also by the
// next open, and the one behind it is refused.
func TestLargestPlace(t *testing.T) {
	sim := newSim(t)
	opts := Options{FileSize: 100}
	s := mustOpen(t, sim, opts)
	mustApply(t, s, entry{topic: "t", at: offsetMax - 1}, entry{topic: "t", at: offsetMax, phy: 200})
	must(t, s.Flush())
	over := entry{topic: "t", at: offsetMax + 1, phy: 400}
	if err := over.apply(t, s); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("behind it: %v", err)
	}
	s = mustOpen(t, sim, opts)
	_, err := s.TruncateAbove(400, func(string, int32, int64, codec.QueueUnit) (bool, error) { return true, nil }, nil)
	must(t, err)
	var units [3]codec.QueueUnit
	n, err := s.Units("t", 0, offsetMax-1, units[:])
	if s.Max("t", 0) != offsetMax+1 || n != 2 || err != nil || units[1].PhysicalOffset != 200 {
		t.Fatalf("end %d, %d units %+v, %v", s.Max("t", 0), n, units, err)
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		name string
		at   int64
		ok   bool
	}{
		{"00000000000000000000", 0, true},
		{"00000000000006000000", 6000000, true},
		{"09223372036854775807", math.MaxInt64, true},
		{"09223372036854775808", 0, false},
		{"0000000000000000000", 0, false},
		{"000000000000000000000", 0, false},
		{"-0000000000000000001", 0, false},
		{"0000000000000000000x", 0, false},
	} {
		at, ok := parseFileName(tc.name)
		if ok != tc.ok || (ok && (at != tc.at || fileName(at) != tc.name)) {
			t.Errorf("%s: %d %v", tc.name, at, ok)
		}
	}
	for name, want := range map[string]bool{
		"0": true, "7": true, "2147483647": true,
		"07": false, "+7": false, "-1": false, "": false, "x": false, "2147483648": false,
	} {
		if _, ok := parseQueueID(name); ok != want {
			t.Errorf("queue id %q: %v", name, ok)
		}
	}
}

// TestOpenRefusesAndChangesNothing: what no power cut explains is damage.
func TestOpenRefusesAndChangesNothing(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(t *testing.T, sim *vfs.Sim)
		file  string
		want  error
	}{
		{"strange name", func(t *testing.T, sim *vfs.Sim) {
			setLength(t, sim, testRoot+"/t/0/notes.txt", 100)
		}, testRoot + "/t/0/notes.txt", ErrFileName},
		{"name between files", func(t *testing.T, sim *vfs.Sim) {
			setLength(t, sim, testRoot+"/t/0/00000000000000000020", 100)
		}, testRoot + "/t/0/00000000000000000020", ErrFileName},
		{"name at the end of all numbers", func(t *testing.T, sim *vfs.Sim) {
			setLength(t, sim, testRoot+"/t/1/09223372036854775800", 100)
		}, testRoot + "/t/1/09223372036854775800", ErrFileName},
		{"batches at the end of all numbers", func(t *testing.T, sim *vfs.Sim) {
			must(t, sim.MkdirAll(batchRoot+"/b/0"))
			setLength(t, sim, batchRoot+"/b/0/"+fileName(math.MaxInt64/46*46), 46)
		}, "", ErrFileName},
		{"too long", func(t *testing.T, sim *vfs.Sim) {
			setLength(t, sim, testRoot+"/t/0/00000000000000000100", 120)
		}, testRoot + "/t/0/00000000000000000100", ErrFileLength},
		{"all of another length", func(t *testing.T, sim *vfs.Sim) {
			setLength(t, sim, testRoot+"/t/0/00000000000000000000", 80)
			setLength(t, sim, testRoot+"/t/0/00000000000000000100", 80)
		}, "", ErrFileLength},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sim := newSim(t)
			s := mustOpen(t, sim, Options{FileSize: 100})
			for i := range int64(8) {
				mustApply(t, s, entry{topic: "t", at: i, phy: i * 200})
			}
			must(t, s.Flush())
			must(t, sim.MkdirAll(testRoot+"/t/1"))
			tc.spoil(t, sim)
			seq := sim.Seq()
			var changed []vfs.Op
			sim.OnOp(func(op vfs.Op) {
				switch op.Kind {
				case vfs.OpWrite, vfs.OpTruncate, vfs.OpRemove, vfs.OpCreate, vfs.OpRename, vfs.OpPunchHole, vfs.OpMkdir:
					changed = append(changed, op)
				}
			})
			_, err := Open(sim, testRoot, Options{FileSize: 100, BatchFileSize: 46})
			var damage *contract.CorruptionError
			if !errors.As(err, &damage) || !errors.Is(err, tc.want) {
				t.Fatalf("%v", err)
			}
			if tc.file != "" && damage.File != tc.file {
				t.Fatalf("names %s", damage.File)
			}
			if len(changed) != 0 {
				t.Fatalf("changed since %d: %v", seq, changed)
			}
		})
	}
}

func TestOpenIgnoresStrangers(t *testing.T) {
	sim := newSim(t)
	must(t, sim.MkdirAll(testRoot+"/t/abc"))
	must(t, sim.MkdirAll(testRoot+"/t/0/sub"))
	setLength(t, sim, testRoot+"/file", 3)
	setLength(t, sim, testRoot+"/t/file", 3)
	setLength(t, sim, testRoot+"/t/0/00000000000000000000", 100)
	s := mustOpen(t, sim, Options{FileSize: 100, ReadOnly: true})
	if r := s.LoadReport(); r.Queues != 1 || r.Topics != 1 || r.Files != 1 || len(r.Suspects) != 0 {
		t.Fatalf("%+v", r)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{FileSize: -1}, {FileSize: 1 << 50}, {MaxHandles: -1}, {MaxGapFiles: -1}} {
		if _, err := Open(newSim(t), testRoot, o); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if o, err := (Options{}).withDefaults(); err != nil || o.FileSize != 6_000_000 {
		t.Fatalf("%+v %v", o, err)
	}
}

func TestDetectFileSize(t *testing.T) {
	sim := newSim(t)
	if n, ok, err := DetectFileSize(sim, testRoot); n != 0 || ok || err != nil {
		t.Fatal(n, ok, err)
	}
	setup := mustOpen(t, sim, Options{FileSize: 640})
	mustApply(t, setup, entry{topic: "a", phy: 0}, entry{topic: "b", phy: 200})
	setLength(t, sim, testRoot+"/a/0/"+fileName(0), 7)
	setLength(t, sim, testRoot+"/a/0/stranger", 7000)
	if n, ok, err := DetectFileSize(sim, testRoot); n != 640 || !ok || err != nil {
		t.Fatal(n, ok, err)
	}
}

// TestDelayTopicCarriesTheDeliveryTime: its units hold store time plus delay.
func TestDelayTopicCarriesTheDeliveryTime(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{})
	for _, tc := range []struct {
		topic string
		delay string
		want  int64
	}{
		{"SCHEDULE_TOPIC_XXXX", "1", 5000 + 1000},
		{"SCHEDULE_TOPIC_XXXX", "3", 5000 + 10_000},
		{"SCHEDULE_TOPIC_XXXX", "18", 5000 + 7_200_000},
		{"SCHEDULE_TOPIC_XXXX", "99", 5000 + 7_200_000},
		{"SCHEDULE_TOPIC_XXXX", "0", 2598919},
		{"SCHEDULE_TOPIC_XXXX", "x", 2598919},
		{"other", "3", 2598919},
	} {
		m := codec.Message{
			Magic: codec.MessageMagicV1, Topic: []byte(tc.topic), StoreTimestamp: 5000,
			BornHost: make([]byte, 8), StoreHost: make([]byte, 8),
			Properties: codec.AppendProperty(codec.AppendProperty(nil, "TAGS", "TagA"), "DELAY", tc.delay),
		}
		b := make([]byte, m.Size())
		_, err := m.Encode(b)
		must(t, err)
		var v codec.MessageView
		must(t, v.Parse(b))
		if got := s.tagsCode(&v); got != tc.want {
			t.Errorf("%s, level %s: %d, want %d", tc.topic, tc.delay, got, tc.want)
		}
	}
}
