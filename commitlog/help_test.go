package commitlog

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"go.uber.org/goleak"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/task"
	"github.com/stratalog/stratalog/internal/vfs"
)

func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0 // a fifth of the time of the power-cut tests
	goleak.VerifyTestMain(m)
}

// rig is a log under test with the goroutines that belong to it.
type rig struct {
	t     testing.TB
	log   *Log
	owner *task.Group
}

// smallOptions are options for a log of tiny segments.
func smallOptions(fs vfs.FS, dir string) Options {
	return Options{FS: fs, Dir: dir, SegmentSize: 16 << 10, MaxMessageSize: 4 << 10, MaxUnsynced: 16 << 10,
		DiskFloor: -1, Unclean: true}
}

// openRig opens and starts a log.
func openRig(t testing.TB, opt Options) *rig {
	t.Helper()
	r, err := tryOpenRig(t, opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return r
}

func tryOpenRig(t testing.TB, opt Options) (*rig, error) {
	log, err := Open(context.Background(), opt)
	if err != nil {
		return nil, err
	}
	r := &rig{t: t, log: log, owner: task.New("test")}
	if err := log.LoadQueueOffsets(nil); err != nil {
		r.kill()
		return nil, err
	}
	if err := log.Start(r.owner); err != nil {
		r.kill()
		return nil, err
	}
	return r, nil
}

// close closes the log in order.
func (r *rig) close(clean bool) {
	r.t.Helper()
	ctx := context.Background()
	if err := r.log.Drain(ctx); err != nil {
		r.t.Errorf("drain: %v", err)
	}
	if rep := r.owner.Close(ctx); rep.Err() != nil {
		r.t.Errorf("tasks: %v", rep.Err())
	}
	if err := r.log.Close(clean); err != nil {
		r.t.Errorf("close: %v", err)
	}
}

// kill stops the goroutines and drops the log without a close.
func (r *rig) kill() {
	r.owner.Close(context.Background())
	_ = r.log.Close(false)
}

// message is the i-th test message of a topic: its size varies with i.
func message(topic string, i int) *contract.Message {
	body := make([]byte, i*37%900)
	for k := range body {
		body[k] = byte(i + k)
	}
	return &contract.Message{Topic: topic, QueueID: int32(i % 3), Body: body, Properties: []byte("KEYS\x01k" + fmt.Sprint(i) + "\x02")}
}

func mustAppend(t testing.TB, l *Log, m *contract.Message, d contract.Durability) contract.Receipt {
	t.Helper()
	r, err := l.Append(context.Background(), m, d)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return r
}

// readBack checks that the record of r is m.
func readBack(t testing.TB, l interface {
	Read(contract.Offset, *Record) (bool, error)
}, r contract.Receipt, m *contract.Message) {
	t.Helper()
	var rec Record
	rng, _ := r.Range()
	found, err := l.Read(rng.Start, &rec)
	if err != nil || !found {
		t.Fatalf("read %v: found %v, %v", rng, found, err)
	}
	defer rec.Release()
	if string(rec.Topic()) != m.Topic || string(rec.Body()) != string(m.Body) || rec.QueueID() != m.QueueID ||
		rec.QueueOffset() != r.QueueOffset() || int64(rec.TotalSize()) != rng.Len() {
		t.Fatalf("read %v: another record", rng)
	}
}
