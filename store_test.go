package stratalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(runRole(role))
	}
	runtime.MemProfileRate = 0
	goleak.VerifyTestMain(m)
}

// testOptions are options of a small store on fs.
func testOptions(fs vfs.FS, dir string) Options {
	return Options{FS: fs, Dir: dir, SegmentSize: 64 << 10, MaxMessageSize: 16 << 10, QueueFileSize: 2000, DiskFloor: -1}
}

// besideFS is where a Reader looks at a store that is written meanwhile. Under the
// race detector that is no Sim, where both have the same memory for a file: to look at
// bytes that are being written is what a Reader does, and checksums are for.
func besideFS(t testing.TB) (vfs.FS, string) {
	if raceEnabled {
		return vfs.OS(), t.TempDir() + "/store"
	}
	return vfs.NewSim(), "/store"
}

func start(t testing.TB, opt Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if err := s.Start(context.Background()); err != nil {
		t.Fatalf("start: %v", err)
	}
	return s
}

func closeClean(t testing.TB, s *Store) {
	t.Helper()
	r, err := s.Close(context.Background())
	if err != nil || !r.Clean {
		t.Fatalf("close: %+v, %v", r, err)
	}
}

// body is the i-th body.
func body(i int) []byte { return []byte(fmt.Sprintf("body-%d-%0*d", i, i*31%700, i)) }

// expect reads queue q of topic from the start and checks it against bodies.
func expect(t testing.TB, s *Store, topic string, q int32, bodies [][]byte) {
	t.Helper()
	var out Records
	defer out.Release()
	next, n := int64(0), 0
	for {
		if err := s.Get(context.Background(), Request{Topic: topic, QueueID: q, Offset: next}, &out); err != nil {
			t.Fatalf("get %s/%d at %d: %v", topic, q, next, err)
		}
		if out.Status != contract.GetFound {
			break
		}
		for i := range out.Len() {
			if n >= len(bodies) || string(out.At(i).Body()) != string(bodies[n]) || out.At(i).QueueOffset() != int64(n) {
				t.Fatalf("%s/%d: record %d is another one", topic, q, n)
			}
			n++
		}
		next = out.Next
	}
	if n != len(bodies) {
		t.Fatalf("%s/%d: %d records (%v at %d), want %d", topic, q, n, out.Status, next, len(bodies))
	}
}

func TestStoreEndToEnd(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"os": vfs.OS(), "sim": vfs.NewSim()} {
		t.Run(name, func(t *testing.T) {
			opt := testOptions(fs, t.TempDir())
			want := map[int32][][]byte{}
			for round := range 4 {
				s := start(t, opt)
				for q, bodies := range want {
					expect(t, s, "topic", q, bodies)
				}
				var last Receipt
				for i := range 200 {
					q := int32(i % 3)
					m := Message{Topic: "topic", QueueID: q, Body: body(round*1000 + i)}
					r, err := s.Append(context.Background(), &m, []Durability{Sync, Memory, Interval}[i%3])
					if err != nil {
						t.Fatal(err)
					}
					if r.QueueOffset() != int64(len(want[q])) {
						t.Fatalf("queue offset %d, want %d", r.QueueOffset(), len(want[q]))
					}
					want[q] = append(want[q], m.Body)
					last = r
				}
				rng, _ := last.Range()
				if err := s.WaitVisible(context.Background(), rng.End-1); err != nil {
					t.Fatal(err)
				}
				closeClean(t, s)
				if _, err := s.Append(context.Background(), &Message{Topic: "topic"}, Sync); !errors.Is(err, contract.ErrClosed) {
					t.Fatalf("append after close: %v", err)
				}
			}
		})
	}
}
