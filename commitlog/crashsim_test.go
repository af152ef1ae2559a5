package commitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// The power-cut tests drive a log from one goroutine, so that a seed names one
// run: what the log's tasks would do, the test does when the seed says so.

// openStill opens a log without its tasks.
func openStill(opt Options, source OffsetSource) (*Log, error) {
	log, err := Open(context.Background(), opt)
	if err != nil {
		return nil, err
	}
	if err := log.LoadQueueOffsets(source); err != nil {
		_ = log.Close(false)
		return nil, err
	}
	log.mu.Lock()
	log.started, log.inline = true, true
	if log.active == nil {
		log.wantNext()
	}
	log.mu.Unlock()
	return log, nil
}

// pump does what segmentLoop does.
func pump(log *Log) {
	select {
	case <-log.makeNext:
		_ = log.prepareNext(context.Background())
	default:
	}
}

// background does what commitLoop does.
func background(log *Log) error {
	log.commitMu.Lock()
	defer log.commitMu.Unlock()
	return log.commit(false)
}

// sent is one record that was handed to the log, in the order of handing.
type sent struct {
	topic string
	queue int32
	body  []byte
	start int64 // -1 until the log said where
}

// sparing keeps garbage away from what was durable. A sector that holds the end
// of a durable record and the beginning of the next one is written again with
// the same bytes in front: that those keep their value is what we assume of a
// disk.
func sparing(safe int64, choose vfs.Chooser) vfs.Chooser {
	return func(i, n int, it vfs.Item) int {
		v := choose(i, n, it)
		if v == vfs.Garbage && it.Kind == vfs.ItemSector {
			// A segment that lost its name is known by its guard's.
			if base, err := strconv.ParseInt(strings.TrimSuffix(path.Base(it.Path), guardSuffix), 10, 64); err == nil && base+it.Offset < safe {
				return it.Versions - 1
			}
		}
		return v
	}
}

// known returns what is durable, as the log knows or, while it is opened, has
// written down.
func (w *workload) known(sim *vfs.Sim) int64 {
	safe := int64(0)
	if w.log != nil {
		safe = w.log.durable.Load()
	}
	side, found, err := loadSidecar(sim.Kill(), cutDirName, vfs.ReadOnly)
	if err == nil && found.bound == sideOK {
		safe = max(safe, side.bound.Durable)
	}
	if err == nil && found.state == sideOK {
		safe = max(safe, side.state.End)
	}
	return safe
}

// history is what the oracle knows.
type history struct {
	sent []sent
	// sync and any are how many of sent are covered by an ack of a Sync append,
	// and of any append. All below them must be there.
	sync, any int
}

// below returns how many records are known to start below off.
func (h *history) below(off int64) int {
	n := 0
	for i, s := range h.sent {
		if s.start >= 0 && s.start < off {
			n = i + 1
		}
	}
	return n
}

type queueKey struct {
	topic string
	queue int32
}

// counts returns the next queue offsets behind the first n records.
func (h *history) counts(n int) map[queueKey]int64 {
	next := map[queueKey]int64{}
	for _, s := range h.sent[:n] {
		next[queueKey{s.topic, s.queue}]++
	}
	return next
}

// QueueOffsets implements OffsetSource: a scan, but with what was retired.
func (h *history) QueueOffsets(log *Log, end contract.Offset, set func(string, int32, int64)) error {
	for k, n := range h.counts(h.below(int64(log.MinOffset()))) {
		set(k.topic, k.queue, n)
	}
	return scanOffsets{}.QueueOffsets(log, end, set)
}

// check walks the whole log and holds it against the history: the records are
// those sent, in order, from the first that is not retired on, none is missing
// and none was made up. It returns how many of sent are there.
func (h *history) check(log *Log, need int) (int, error) {
	minimum := int64(log.MinOffset())
	i := h.below(minimum)
	next := h.counts(i)
	at := minimum
	s := log.scanFrom(log.MinOffset(), log.Appended())
	for s.Next() {
		v := s.View()
		if i >= len(h.sent) {
			return i, fmt.Errorf("record at %d was never submitted", s.Offset())
		}
		w := &h.sent[i]
		q := queueKey{w.topic, w.queue}
		switch {
		case s.Offset() != at && s.Offset() != s.seg.base:
			return i, fmt.Errorf("record %d at %d: a hole before it, at %d", i, s.Offset(), at)
		case string(v.Topic()) != w.topic || v.QueueID() != w.queue || !bytes.Equal(v.Body(), w.body):
			return i, fmt.Errorf("record %d at %d is another one", i, s.Offset())
		case v.QueueOffset() != next[q]:
			return i, fmt.Errorf("record %d at %d: queue offset %d, want %d", i, s.Offset(), v.QueueOffset(), next[q])
		case w.start >= 0 && w.start != s.Offset():
			return i, fmt.Errorf("record %d at %d, acknowledged at %d", i, s.Offset(), w.start)
		}
		next[q]++
		at = s.off
		i++
	}
	switch {
	case s.Err() != nil:
		return i, s.Err()
	case s.off != int64(log.Appended()):
		return i, fmt.Errorf("the records end at %d, the log at %d", s.off, log.Appended())
	case !restIsZero(log):
		return i, errors.New("there are bytes behind the end")
	case i < need:
		return i, fmt.Errorf("record %d of %d acknowledged ones is gone", i, need)
	}
	return i, nil
}

// restIsZero tells that nothing stands behind the end of the log.
func restIsZero(log *Log) bool {
	end := int64(log.Appended())
	for _, seg := range log.segs.Load().segs {
		if seg.end() > end && firstNonZero(seg.file.Bytes()[max(0, end-seg.base):]) >= 0 {
			return false
		}
	}
	return true
}

// workload is one seeded run.
type workload struct {
	history
	seed   uint64
	rng    *rand.Rand
	opt    Options
	sim    *vfs.Sim
	fault  *vfs.Fault
	log    *Log
	hook   func(vfs.Op)
	number int
	// safe is what is durable at the crash point.
	safe int64
	// intruded counts the segments that another program deleted.
	intruded int
	// during is how many appends to do in the middle of the next sync.
	during, after int
	// rules are in force from the start.
	rules []vfs.Rule
}

const cutDirName = "/root/store"

// newWorkload returns the workload of a seed. The low bits choose write path,
// segment size, visibility, the kind of file system, and whether another program
// deletes segments.
func newWorkload(seed uint64, broken breakage) *workload {
	w := &workload{seed: seed, rng: rand.New(rand.NewPCG(seed, 0x57a7a)),
		sim: vfs.NewSimOptions(vfs.SimOptions{JournaledRename: seed>>3&1 != 0})}
	w.opt = Options{Dir: cutDirName, SegmentSize: 8 << 10, MaxMessageSize: 2 << 10, MaxUnsynced: 6 << 10,
		DiskFloor: -1, Unclean: true, WritePath: WritePwrite, AdmissionWait: -1, Gather: -1, broken: broken}
	if seed&1 != 0 {
		w.opt.WritePath = WriteMmap
	}
	if seed&2 != 0 {
		w.opt.SegmentSize, w.opt.MaxUnsynced = 16<<10, 16<<10
	}
	if seed&4 != 0 {
		w.opt.Visibility = contract.VisibilityAppended
	}
	return w
}

// crashOptions are those with which an image is opened.
func (w *workload) crashOptions(sim *vfs.Sim) Options {
	opt := w.opt
	opt.FS = sim
	opt.Unclean = true
	if opt.broken != brokenCutBelowBound {
		opt.broken = brokenNone
	}
	return opt
}

func (w *workload) open() error {
	w.fault = vfs.NewFault(w.sim)
	inSync := func(left *int) func(vfs.Op) {
		return func(vfs.Op) {
			for ; *left > 0; *left-- {
				_ = w.append(w.message(), contract.DurabilityMemory)
			}
		}
	}
	for _, r := range w.rules {
		w.fault.Add(r)
	}
	data := vfs.Rule{Kinds: vfs.KindsOf(vfs.OpDatasync), Path: "commitlog/*", Sticky: true}
	data.Hook = inSync(&w.during)
	w.fault.Add(data)
	data.Hook, data.After = inSync(&w.after), true
	w.fault.Add(data)
	w.sim.OnOp(w.hook)
	opt := w.opt
	opt.FS = w.fault
	log, err := openStill(opt, &w.history)
	if err == nil {
		w.log = log // else the old one stays, closed
		if reason := log.Report().SidecarReason; reason != "" && len(w.sent) > 0 {
			return fmt.Errorf("the sidecar is not whole: %s", reason)
		}
	}
	return err
}

func (w *workload) message() *contract.Message {
	w.number++
	n := w.number
	size := w.rng.IntN(700)
	if w.rng.IntN(12) == 0 {
		size = w.opt.MaxMessageSize - w.rng.IntN(300)
	}
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(n*31 + i*7)
	}
	if size >= 4 {
		copy(body, fmt.Sprintf("%04d", n))
	}
	return &contract.Message{Topic: "T" + fmt.Sprint(n%2), QueueID: int32(n % 3), Body: body}
}

// hand notes what is about to be appended and returns the index of the first.
func (w *workload) hand(msgs ...*contract.Message) int {
	first := len(w.sent)
	for _, m := range msgs {
		w.sent = append(w.sent, sent{topic: m.Topic, queue: m.QueueID, body: m.Body, start: -1})
	}
	return first
}

// answered notes the answer for the record of index i.
func (w *workload) answered(i int, r contract.Receipt, err error, d contract.Durability) {
	rng, ok := r.Range()
	if !ok {
		return
	}
	w.sent[i].start = int64(rng.Start)
	if err != nil {
		return
	}
	w.any = max(w.any, i+1)
	if d == contract.DurabilitySync {
		w.sync = max(w.sync, i+1)
	}
}

// append appends one message; it makes room first if there is none.
func (w *workload) append(m *contract.Message, d contract.Durability) error {
	i := w.hand(m)
	r, err := w.log.Append(context.Background(), m, d)
	if _, ok := r.Range(); !ok && !errors.Is(err, contract.ErrOutcomeUnknown) {
		w.sent = w.sent[:i]
		return err
	}
	w.answered(i, r, err, d)
	return err
}

func (w *workload) appendBatch(n int, d contract.Durability) error {
	msgs := make([]contract.Message, n)
	ptrs := make([]*contract.Message, n)
	first := w.message()
	for i := range msgs {
		m := w.message()
		m.Topic, m.QueueID = first.Topic, first.QueueID
		m.Body = m.Body[:min(len(m.Body), 400)]
		msgs[i] = *m
		ptrs[i] = m
	}
	at := w.hand(ptrs...)
	out, err := w.log.AppendBatch(context.Background(), msgs, d, nil)
	if len(out) == 0 && !errors.Is(err, contract.ErrOutcomeUnknown) {
		w.sent = w.sent[:at]
		return err
	}
	for i, r := range out {
		w.answered(at+i, r, err, d)
	}
	return err
}

var anyDurability = []contract.Durability{contract.DurabilitySync, contract.DurabilityMemory, contract.DurabilityInterval}

// run does the given number of steps. It stops at the first error that the log
// should not have answered.
func (w *workload) run(steps int) error {
	if err := w.open(); err != nil {
		return err
	}
	for range steps {
		if w.intruder() && w.rng.IntN(6) == 0 {
			if err := w.intrude(); err != nil {
				return fmt.Errorf("intruder: %w", err)
			}
		}
		if err := w.step(); err != nil {
			return fmt.Errorf("step: %w", err)
		}
		pump(w.log)
	}
	_ = w.log.Close(false) // not all is synced
	return nil
}

// intruder reports whether another program deletes segments: in every third
// workload, of which the first is one.
func (w *workload) intruder() bool { return w.seed%3 == 1 }

// intrude does what a broker does that is started by mistake beside us: it deletes
// a young segment.
func (w *workload) intrude() error {
	if len(w.log.guards) == 0 {
		return nil
	}
	base := w.log.guards[w.rng.IntN(len(w.log.guards))].base
	err := w.sim.Remove(path.Join(cutDirName, "commitlog", segmentName(contract.Offset(base))))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it did so before
	}
	w.intruded++
	return err
}

func (w *workload) step() error {
	ctx := context.Background()
	d := anyDurability[w.rng.IntN(3)]
	var err error
	switch p := w.rng.IntN(100); {
	case p < 46:
		err = w.append(w.message(), d)
	case p < 58:
		err = w.appendBatch(2+w.rng.IntN(4), d)
	case p < 66:
		// Appends go on while a sync runs.
		w.during, w.after = w.rng.IntN(4), w.rng.IntN(3)
		err = w.append(w.message(), contract.DurabilitySync)
		w.during, w.after = 0, 0
	case p < 72:
		// Some wait for one commit.
		for range 3 {
			m, d := w.message(), anyDurability[w.rng.IntN(2)]
			i := w.hand(m)
			err = w.log.Submit(ctx, m, d, func(r contract.Receipt, err error) {
				w.answered(i, r, err, d)
			})
			if err != nil {
				w.sent = w.sent[:i]
				break
			}
		}
		err = errors.Join(err, background(w.log))
	case p < 80:
		err = background(w.log)
	case p < 86:
		err = w.log.syncBound()
	case p < 89:
		err = w.log.SaveCursor(contract.Cursor{Lane: contract.LaneQueue, Epoch: w.log.Epoch(), Next: w.log.Durable()}, -1)
	case p < 92:
		err = w.truncate()
	case p < 95:
		_, err = w.log.Retire(contract.Offset(w.rng.Int64N(int64(w.log.Durable()) + 1)))
	case p < 97:
		if err = w.log.Drain(ctx); err == nil {
			err = w.log.Close(true)
		}
		if err == nil {
			w.opt.Unclean = false
			err = w.open()
			w.opt.Unclean = true
		}
	default:
		// The process dies, and the next one goes on.
		dead := w.log
		w.sim.OnOp(nil)
		w.sim = w.sim.Kill()
		_ = dead.Close(false)
		n := w.any
		if err = w.open(); err == nil {
			if n, err = w.check(w.log, n); err == nil {
				w.sent = w.sent[:n]
			}
		}
	}
	if errors.Is(err, contract.ErrBusy) {
		// Nothing was written; make room.
		return background(w.log)
	}
	return err
}

// truncate cuts the log at a place where a record starts.
func (w *workload) truncate() error {
	if err := background(w.log); err != nil {
		return err
	}
	live := w.below(int64(w.log.MinOffset()))
	if live >= len(w.sent) {
		return nil
	}
	k := live + w.rng.IntN(len(w.sent)-live)
	k = max(k, len(w.sent)-1-w.rng.IntN(12))
	w.sync, w.any = min(w.sync, k), min(w.any, k)
	if err := w.log.TruncateTo(context.Background(), contract.Offset(w.sent[k].start), &w.history); err != nil {
		return err
	}
	w.sent = w.sent[:k]
	return nil
}

// files returns the content of the commitlog directory.
func files(fs vfs.FS) (string, error) {
	dir := path.Join(cutDirName, "commitlog")
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		f, err := fs.Open(path.Join(dir, e.Name), vfs.ReadOnly)
		if err != nil {
			return "", err
		}
		info, err := f.Stat()
		if err != nil {
			return "", err
		}
		data := make([]byte, info.Size)
		if len(data) > 0 {
			if _, err := f.ReadAt(data, 0); err != nil {
				return "", err
			}
		}
		_ = f.Close()
		fmt.Fprintf(&b, "%s %d\n", e.Name, len(data))
		b.Write(data)
	}
	return b.String(), nil
}

// checkImage opens what a crash left and checks it. need is how many records
// must be there.
func (w *workload) checkImage(image *vfs.Sim, need int) (int, error) {
	log, err := openStill(w.crashOptions(image), &w.history)
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	n, err := w.check(log, need)
	if reason := log.Report().SidecarReason; reason != "" && len(w.sent) > 0 {
		err = errors.Join(err, fmt.Errorf("the sidecar is not whole: %s", reason))
	}
	return n, errors.Join(err, log.Close(false))
}

// checkDeep checks an image further: recovering once more changes no byte of
// the log; five new appends land behind the rest and survive a power cut; a
// crash at each step of recovery recovers too. It returns how many more states
// it looked at. The image is used up.
func (w *workload) checkDeep(image *vfs.Sim, need int, rng *rand.Rand) (int, error) {
	inside := 0
	var failed error
	first := image.Kill()
	first.OnOp(func(op vfs.Op) {
		safe := w.known(first)
		for k, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew(), vfs.Random(rng, 0.5), vfs.RandomGarbage(rng, 0.5, 0.3)} {
			if failed != nil {
				return
			}
			inside++
			if _, err := w.checkImage(first.Crash(sparing(safe, choose)), need); err != nil {
				failed = fmt.Errorf("crash in recovery before %v of %s, way %d: %w", op.Kind, op.Path, k, err)
			}
		}
	})
	n, err := w.checkImage(first, need)
	first.OnOp(nil)
	if err = errors.Join(err, failed); err != nil {
		return inside, err
	}
	// What a kill left pending may be lost only now: what recovery found must
	// not depend on it.
	before, err := files(first)
	if err != nil {
		return inside, err
	}
	if n2, err := w.checkImage(first, n); err != nil || n2 != n {
		return inside, fmt.Errorf("second recovery: %d records after %d, %w", n2, n, err)
	}
	after, err := files(first)
	if err != nil {
		return inside, err
	}
	if before != after {
		return inside, errors.New("second recovery changed the log")
	}
	cut := first.Crash(vfs.AllOld())
	if n2, err := w.checkImage(cut, n); err != nil || n2 != n {
		return inside, fmt.Errorf("power cut after recovery: %d records after %d, %w", n2, n, err)
	}
	return inside + 2, w.checkAppends(first, n)
}

// checkAppends appends five records to an image of n and cuts the power.
func (w *workload) checkAppends(image *vfs.Sim, n int) error {
	h := &workload{history: history{sent: slices.Clone(w.sent[:n])}, opt: w.opt, number: 1000, rng: rand.New(rand.NewPCG(w.seed, 5))}
	opt := w.crashOptions(image)
	log, err := openStill(opt, &h.history)
	if err != nil {
		return err
	}
	h.log = log
	for range 5 {
		m := h.message()
		err := h.append(m, contract.DurabilitySync)
		for errors.Is(err, contract.ErrBusy) {
			pump(log)
			err = h.append(m, contract.DurabilitySync)
		}
		if err != nil {
			return fmt.Errorf("append after recovery: %w", err)
		}
	}
	_ = log.Close(false)
	for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
		if got, err := h.checkImage(image.Crash(choose), n+5); err != nil || got != n+5 {
			return fmt.Errorf("five appends after recovery: %d records, want %d: %w", got, n+5, err)
		}
	}
	return nil
}
