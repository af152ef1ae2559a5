package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/conformance/javapeer"
	"github.com/stratalog/stratalog/contract"
)

// TestStates has the cases about what a directory has been through: expired
// heads, queues made anew, cuts, crashes, and what one side did while the other
// was away.
func TestStates(t *testing.T) {
	runCases(t, []testCase{
		{group: "a", name: "get-statuses", run: getStatuses},
		{group: "a", name: "expired-heads", run: expiredHeads},
		{group: "a", name: "expired-queue", run: expiredQueue},
		{group: "a", name: "prefill", run: prefill},
		{group: "a", name: "missing-queues", run: missingQueues},
		{group: "a", name: "empty-last-segment-file", run: func(e *env) error { return emptyLastFile(e, "commitlog") }},
		{group: "a", name: "empty-last-queue-file", run: func(e *env) error { return emptyLastFile(e, "consumequeue/kinds/0") }},
		{group: "a", name: "zero-last-segment", run: zeroLastSegment},
		{group: "a", name: "torn-tail-after-crash", run: func(e *env) error { return tornTail(e, true) }},
		{group: "a", name: "torn-tail-after-exit", run: func(e *env) error { return tornTail(e, false) }},
		{group: "a", name: "stale-bytes-after-recovery", run: staleBytes},
		{group: "b", name: "truncated", run: weTruncated},
		{group: "b", name: "no-checkpoint", run: func(e *env) error { return withoutFile(e, "checkpoint") }},
		{group: "b", name: "no-queues", run: func(e *env) error { return withoutFile(e, "consumequeue") }},
		{group: "b", name: "half-made-queue-file", run: halfMade},
		{group: "g", name: "java-appended", run: func(e *env) error { return javaAppended(e, true) }},
		{group: "g", name: "java-appended-as-it-comes", run: func(e *env) error { return javaAppended(e, false) }},
		{group: "g", name: "java-appended-reader-first", run: func(e *env) error { return readerAfterJava(e, true) }},
		{group: "g", name: "java-appended-reader-first-as-it-comes", run: func(e *env) error { return readerAfterJava(e, false) }},
		{group: "g", name: "java-appended-and-crashed", run: func(e *env) error { return javaCrashed(e, true) }},
		{group: "g", name: "java-appended-and-crashed-as-it-comes", run: func(e *env) error { return javaCrashed(e, false) }},
		{group: "g", name: "java-expired-segments", run: javaExpired},
		{group: "g", name: "java-deleted-topic", run: javaDeletedTopic},
		{group: "g", name: "java-truncated", run: func(e *env) error { return javaTruncated(e, 10, 0) }},
		{group: "g", name: "java-truncated-segments", run: func(e *env) error { return javaTruncated(e, 200, 0) }},
		{group: "g", name: "java-truncated-and-appended", run: func(e *env) error { return javaTruncated(e, 10, 3) }},
		{group: "g", name: "java-truncated-and-appended-as-much", run: func(e *env) error { return javaTruncated(e, 10, 30) }},
		{group: "g", name: "java-truncated-segments-and-appended", run: func(e *env) error { return javaTruncated(e, 200, 3) }},
	})
}

// some makes n messages from number from on.
func some(from, n int) [][]stratalog.Message {
	return several(n, func(i int, m *stratalog.Message) {
		i += from
		m.Body = body(i, 200+i%500)
		m.Properties = props("KEYS", fmt.Sprintf("k%d", i), "TAGS", fmt.Sprintf("tag%d", i%3))
	})
}

// statusNames are Java's names of our get statuses.
var statusNames = map[contract.GetStatus]string{
	contract.GetFound: "FOUND", contract.GetNoMatchedMessage: "NO_MATCHED_MESSAGE", contract.GetMessageWasRemoving: "MESSAGE_WAS_REMOVING",
	contract.GetOffsetFoundNull: "OFFSET_FOUND_NULL", contract.GetOffsetOverflowBadly: "OFFSET_OVERFLOW_BADLY",
	contract.GetOffsetOverflowOne: "OFFSET_OVERFLOW_ONE", contract.GetOffsetTooSmall: "OFFSET_TOO_SMALL",
	contract.GetNoMatchedLogicQueue: "NO_MATCHED_LOGIC_QUEUE", contract.GetNoMessageInQueue: "NO_MESSAGE_IN_QUEUE",
	contract.GetOffsetReset: "OFFSET_RESET",
}

// getStatuses asks both sides for the same offsets, inside, at the edges and
// outside, of a queue with an expired head.
func getStatuses(e *env) error {
	s := usual()
	dir := e.dir()
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	type asked struct {
		offset int64
		count  int
		got    javapeer.Got
	}
	var list []asked
	err = func() error {
		if _, err := e.javaPuts(store, some(0, 400)); err != nil {
			return err
		}
		if err := store.Wait(e.ctx); err != nil {
			return err
		}
		if n, _, err := store.DeleteExpired(e.ctx, 2); err != nil || n != 2 {
			return fmt.Errorf("expired %d files: %w", n, err)
		}
		queues, err := store.Queues(e.ctx)
		if err != nil {
			return err
		}
		q := queues[0]
		if q.Min == 0 {
			return errors.New("nothing expired")
		}
		for _, at := range []int64{0, 1, q.Min - 1, q.Min, q.Min + 1, q.Max - 2, q.Max - 1, q.Max, q.Max + 1, q.Max + 1000} {
			for _, count := range []int{1, 2, 7} {
				got, err := store.Get(e.ctx, q.Topic, q.Queue, at, count, "")
				if err != nil {
					return err
				}
				list = append(list, asked{at, count, got})
			}
		}
		return nil
	}()
	if err := errors.Join(err, store.Shutdown(e.ctx)); err != nil {
		return err
	}
	reader, err := stratalog.OpenReader(e.ctx, s.options(dir), stratalog.ReaderOptions{})
	if err != nil {
		return err
	}
	defer reader.Close()
	var out stratalog.Records
	defer out.Release()
	var errs []error
	for _, a := range list {
		if err := reader.Get(e.ctx, stratalog.Request{Topic: "kinds", Offset: a.offset, MaxCount: a.count}, &out); err != nil {
			return err
		}
		java := fmt.Sprint(a.got.Status, a.got.Next, a.got.Min, a.got.Max, len(a.got.Records))
		ours := fmt.Sprint(statusNames[out.Status], out.Next, out.Min, out.Max, out.Len())
		if java != ours {
			errs = append(errs, fmt.Errorf("get %d at %d: java says %s, we say %s", a.count, a.offset, java, ours))
		}
	}
	return errors.Join(errs...)
}

// expiredHeads: Java removes its oldest segments; both then see the same ranges.
func expiredHeads(e *env) error {
	s := usual()
	dir := e.dir()
	java, err := e.javaWithExpired(dir, s, some(0, 400), 3)
	if err != nil {
		return err
	}
	ours, err := e.weRead(s.options(dir))
	if err != nil {
		return err
	}
	again, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	return errors.Join(differs("ours", ours, java), differs("java again", again, java))
}

// javaWithExpired writes, and removes the first segments.
func (e *env) javaWithExpired(dir string, s setup, groups [][]stratalog.Message, segments int) (snapshot, error) {
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return nil, err
	}
	var seen snapshot
	err = func() error {
		if _, err := e.javaPuts(store, groups); err != nil {
			return err
		}
		if err := store.Wait(e.ctx); err != nil {
			return err
		}
		n, _, err := store.DeleteExpired(e.ctx, segments)
		if err != nil || n != segments {
			return fmt.Errorf("expired %d files: %w", n, err)
		}
		seen, err = javaSees(e.ctx, store)
		return err
	}()
	return seen, errors.Join(err, store.Shutdown(e.ctx))
}

// expiredQueue: all records of one queue are in segments that are gone, and its
// offsets must go on where they were.
func expiredQueue(e *env) error {
	s := usual()
	dir := e.dir()
	old := several(20, func(i int, m *stratalog.Message) { m.Topic, m.QueueID = "old", 0 })
	if _, err := e.javaWithExpired(dir, s, append(old, some(0, 400)...), 2); err != nil {
		return err
	}
	for round := range 2 {
		more := several(1, func(_ int, m *stratalog.Message) { m.Topic, m.QueueID = "old", 0 })
		var all []sent
		var err error
		if round == 0 {
			all, _, err = e.weWrite(s.options(dir), more, nil, nil)
		} else {
			all, _, err = e.javaWrites(dir, s, more)
		}
		if err != nil {
			return err
		}
		if all[0].offset != int64(20+round) {
			return fmt.Errorf("round %d: the next offset of the expired queue is %d, want %d", round, all[0].offset, 20+round)
		}
	}
	_, ours, err := e.opened(s.options(dir))
	if err != nil {
		return err
	}
	if q := ours[queueKey{"old", 0}]; q.min != 20 || q.max != 22 {
		return fmt.Errorf("the expired queue is [%d,%d), want [20,22)", q.min, q.max)
	}
	return e.verifiedDir(s.options(dir))
}

// readerAfterJava: a reader sees all that Java appended to our directory, while
// Java has it open and after its exit, before we have opened it again.
func readerAfterJava(e *env, checksum bool) error {
	s, theirs := usual(), usual()
	theirs.checksum = checksum
	dir := e.dir()
	if _, _, err := e.weWrite(s.options(dir), some(0, 100), nil, nil); err != nil {
		return err
	}
	reader, err := stratalog.OpenReader(e.ctx, s.options(dir), stratalog.ReaderOptions{})
	if err != nil {
		return err
	}
	sees := func(what string, want snapshot) error {
		ours, err := oursSees(e.ctx, reader)
		return errors.Join(err, differs(what, ours, want))
	}
	store, err := e.openJava(e.java, dir, theirs)
	if err != nil {
		return errors.Join(err, reader.Close())
	}
	_, err = e.javaPuts(store, some(100, 100))
	if err == nil {
		err = store.Wait(e.ctx)
	}
	java, seen := javaSees(e.ctx, store)
	if err = errors.Join(err, seen, reader.Refresh(e.ctx)); err == nil {
		err = sees("our reader beside java", java)
	}
	if err = errors.Join(err, store.Shutdown(e.ctx)); err == nil {
		err = reader.Refresh(e.ctx)
	}
	if err == nil {
		err = sees("our reader after java", java)
	}
	return errors.Join(err, reader.Close())
}

// prefill: the heads are gone and the queues with them. Both make them anew, with
// blank units in front, and make the same bytes.
func prefill(e *env) error {
	s := usual()
	dir, copied := e.dir(), e.dir()
	java, err := e.javaWithExpired(dir, s, some(0, 400), 3)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "consumequeue")); err != nil {
		return err
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return err
	}
	again, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	_, made, err := e.weWrite(s.options(copied), nil, nil, nil)
	if err != nil {
		return err
	}
	ours, err := e.weRead(s.options(dir))
	if err != nil {
		return err
	}
	return errors.Join(differs("java's own", again, java), differs("ours of java's", ours, java), differs("ours", made, java),
		sameFiles("consumequeue", copied, dir))
}

// missingQueues: the queues are gone and the log is whole.
func missingQueues(e *env) error {
	s := usual()
	dir := e.dir()
	all, java, err := e.javaWrites(dir, s, some(0, 200))
	if err != nil {
		return err
	}
	before, err := files(dir, "consumequeue")
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "consumequeue")); err != nil {
		return err
	}
	_, ours, err := e.weWrite(s.options(dir), nil, nil, nil)
	if err != nil {
		return err
	}
	after, err := files(dir, "consumequeue")
	if err != nil {
		return err
	}
	for name, b := range before {
		if string(after[name]) != string(b) {
			return fmt.Errorf("consumequeue/%s is made anew otherwise: %s", name, firstDifference(after[name], b))
		}
	}
	return errors.Join(differs("ours", ours, java), holds(ours, all))
}

// emptyLastFile: Java makes a file and gives it its length afterwards; a crash
// between leaves it empty, and Java itself then removes it.
func emptyLastFile(e *env, sub string) error {
	s := usual()
	dir := e.dir()
	all, java, err := e.javaWrites(dir, s, some(0, 200))
	if err != nil {
		return err
	}
	list, err := files(dir, sub)
	if err != nil {
		return err
	}
	var last int64
	for name, b := range list {
		var start int64
		if _, err := fmt.Sscanf(name, "%d", &start); err != nil {
			return err
		}
		last = max(last, start+int64(len(b)))
	}
	for _, name := range []string{"abort", filepath.Join(sub, fmt.Sprintf("%020d", last))} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	copied := e.dir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return err
	}
	again, err := e.javaReads(copied, s)
	if err != nil {
		return err
	}
	if err := differs("java again", again, java); err != nil {
		return err
	}
	_, ours, err := e.weWrite(s.options(dir), nil, nil, nil)
	if err != nil {
		return err
	}
	return errors.Join(differs("ours", ours, java), holds(ours, all))
}

// zeroLastSegment: the segment that Java makes ahead of need stays behind after a
// crash.
func zeroLastSegment(e *env) error {
	s := usual()
	dir := e.dir()
	_, java, err := e.javaWrites(dir, s, some(0, 200))
	if err != nil {
		return err
	}
	list, err := files(dir, "commitlog")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "commitlog", fmt.Sprintf("%020d", int64(len(list))*s.segment))
	if err := os.WriteFile(name, make([]byte, s.segment), 0o600); err != nil {
		return err
	}
	for _, unclean := range []bool{false, true} {
		copied := e.dir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			return err
		}
		if unclean {
			if err := os.WriteFile(filepath.Join(copied, "abort"), nil, 0o600); err != nil {
				return err
			}
		}
		more, ours, err := e.weWrite(s.options(copied), some(200, 100), nil, nil)
		if err != nil {
			return fmt.Errorf("unclean %v: %w", unclean, err)
		}
		if n := java.records(); ours.records() != n+len(more) {
			return fmt.Errorf("unclean %v: %d records of %d", unclean, ours.records(), n+len(more))
		}
		again, err := e.javaReads(copied, s)
		if err != nil {
			return err
		}
		if err := differs("java", again, ours); err != nil {
			return err
		}
	}
	return nil
}

// tear zeroes 16 bytes just behind the body of the last record.
func tear(dir string, s setup, last sent) error {
	name := filepath.Join(dir, "commitlog", fmt.Sprintf("%020d", last.phy/s.segment*s.segment))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, 16), last.phy%s.segment+88+int64(len(last.m.Body)))
	return errors.Join(err, f.Close())
}

// tornTail: the last record is torn. After a crash both cut it; after an exit in
// order Java cuts it silently, and we must not.
func tornTail(e *env, crashed bool) error {
	s := usual()
	dir := e.dir()
	all, before, err := e.javaWrites(dir, s, some(0, 200))
	if err != nil {
		return err
	}
	if err := tear(dir, s, all[len(all)-1]); err != nil {
		return err
	}
	if crashed {
		if err := os.WriteFile(filepath.Join(dir, "abort"), nil, 0o600); err != nil {
			return err
		}
	}
	copied := e.dir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return err
	}
	java, err := e.javaReads(copied, s)
	if err != nil {
		return err
	}
	if java.records() != before.records()-1 {
		return fmt.Errorf("java keeps %d records of %d", java.records(), before.records())
	}
	_, ours, err := e.weWrite(s.options(dir), nil, nil, nil)
	if !crashed {
		if !isCorrupt(err) {
			return fmt.Errorf("a torn record in a log that was closed in order: %v, want damage", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	return differs("ours", ours, java)
}

// staleBytes: Java recovers from a torn tail, writes a shorter record in its
// place, and exits in order. What the torn record left behind the new end stays:
// to Java such a directory is clean.
func staleBytes(e *env) error {
	s := usual()
	dir := e.dir()
	long := several(1, func(_ int, m *stratalog.Message) { m.Body = body(1, 3000) })
	short := several(1, func(_ int, m *stratalog.Message) { m.Body = body(2, 30) })
	all, _, err := e.javaWrites(dir, s, append(some(0, 20), long...))
	if err != nil {
		return err
	}
	if err := errors.Join(tear(dir, s, all[len(all)-1]), os.WriteFile(filepath.Join(dir, "abort"), nil, 0o600)); err != nil {
		return err
	}
	if _, _, err = e.javaWrites(dir, s, short); err != nil {
		return err
	}
	java, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	ours, err := e.weRead(s.options(dir))
	if err != nil {
		return err
	}
	return differs("ours", ours, java)
}

// weTruncated: we cut our log, append something else, and Java reads that.
func weTruncated(e *env) error {
	s := usual()
	dir := e.dir()
	store, err := openOurs(e.ctx, s.options(dir))
	if err != nil {
		return err
	}
	all, err := weAppend(e.ctx, store, some(0, 300), nil, nil)
	if err == nil {
		err = store.TruncateTo(e.ctx, stratalog.Offset(all[120].phy))
	}
	var more []sent
	if err == nil {
		more, err = weAppend(e.ctx, store, some(1000, 50), nil, nil)
	}
	var ours snapshot
	if err == nil {
		ours, err = oursSees(e.ctx, store)
	}
	if err = errors.Join(err, closeOurs(e.ctx, store)); err != nil {
		return err
	}
	java, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	return errors.Join(differs("java", java, ours), holds(java, all[:120]), holds(java, more))
}

// withoutFile: something derived is missing of what we wrote, and Java makes do.
func withoutFile(e *env, name string) error {
	// It believes the checkpoint, in directories of its own too: docs/format/java.md
	believes := name == "consumequeue" && e.version != "5.3.3"
	return e.javaReadsChanged(!believes, func(dir string) error { return os.RemoveAll(filepath.Join(dir, name)) })
}

// halfMade: a queue file that we were making anew when we died is no queue's, and
// Java passes over it, too.
func halfMade(e *env) error {
	return e.javaReadsChanged(true, func(dir string) error {
		var errs []error
		for _, name := range []string{"consumequeue", "batchconsumequeue"} {
			errs = append(errs, os.MkdirAll(filepath.Join(dir, name), 0o700),
				os.WriteFile(filepath.Join(dir, name, ".anew"), make([]byte, 1000), 0o600))
		}
		return errors.Join(errs...)
	})
}

// javaReadsChanged has Java read what we wrote, with a change, left in order and not.
func (e *env) javaReadsChanged(unclean bool, change func(dir string) error) error {
	s := usual()
	dir := e.dir()
	_, ours, err := e.weWrite(s.options(dir), some(0, 300), nil, nil)
	if err != nil {
		return err
	}
	if err := change(dir); err != nil {
		return err
	}
	ends := []bool{false}
	if unclean {
		ends = append(ends, true)
	}
	for _, unclean := range ends {
		copied := e.dir()
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			return err
		}
		if unclean {
			if err := os.WriteFile(filepath.Join(copied, "abort"), nil, 0o600); err != nil {
				return err
			}
		}
		java, err := e.javaReads(copied, s)
		if err == nil {
			err = differs("java", java, ours)
		}
		if err != nil {
			return fmt.Errorf("unclean %v: %w", unclean, err)
		}
	}
	return nil
}

// opened opens dir with us, and returns what the open found and what we then see.
func (e *env) opened(opt stratalog.Options) (stratalog.LoadReport, snapshot, error) {
	store, err := openOurs(e.ctx, opt)
	if err != nil {
		return stratalog.LoadReport{}, nil, err
	}
	seen, err := oursSees(e.ctx, store)
	return store.Report(), seen, errors.Join(err, closeOurs(e.ctx, store))
}

// noticed is an error unless the open saw that another program wrote.
func noticed(r stratalog.LoadReport) error {
	if !r.Log.Foreign || !r.Log.NewEpoch {
		return fmt.Errorf("not noticed: start %q, tail %q, foreign %v, new epoch %v", r.Log.Start, r.Log.Tail, r.Log.Foreign, r.Log.NewEpoch)
	}
	return nil
}

// javaAppended: with or without a checksum over Java's records; its default is
// without, and they stand behind ours, of which each has one.
func javaAppended(e *env, checksum bool) error {
	s, java := usual(), usual()
	java.checksum = checksum
	dir := e.dir()
	all, _, err := e.weWrite(s.options(dir), some(0, 100), nil, nil)
	if err != nil {
		return err
	}
	more, seen, err := e.javaWrites(dir, java, some(100, 100))
	if err != nil {
		return err
	}
	report, ours, err := e.opened(s.options(dir))
	if err != nil {
		return err
	}
	// A second open has nothing left to notice.
	again, _, err := e.opened(s.options(dir))
	if err == nil && again.Log.Foreign {
		err = errors.New("noticed once more by the next open")
	}
	return errors.Join(err, noticed(report), differs("ours", ours, seen), holds(ours, all), holds(ours, more))
}

// crashed runs work on a store of a Java process that is then killed.
func (e *env) crashed(dir string, s setup, work func(*javapeer.Store) error) error {
	p, err := javapeer.Start(e.ctx, root, e.version, e.t.TempDir())
	if err != nil {
		return err
	}
	store, err := e.openJava(p, dir, s)
	if err == nil {
		err = work(store)
	}
	return errors.Join(err, p.Kill())
}

func javaCrashed(e *env, checksum bool) error {
	s, java := usual(), usual()
	java.checksum = checksum
	dir := e.dir()
	all, _, err := e.weWrite(s.options(dir), some(0, 100), nil, nil)
	if err != nil {
		return err
	}
	var more []sent
	err = e.crashed(dir, java, func(store *javapeer.Store) (err error) {
		more, err = e.javaPuts(store, some(100, 100))
		return err
	})
	if err != nil {
		return err
	}
	report, ours, err := e.opened(s.options(dir))
	if err != nil {
		return err
	}
	if !report.Unclean {
		err = errors.New("the abort file of java was not seen")
	}
	return errors.Join(err, noticed(report), holds(ours, all), holds(ours, more))
}

func javaExpired(e *env) error {
	s := usual()
	dir := e.dir()
	if _, _, err := e.weWrite(s.options(dir), some(0, 400), nil, nil); err != nil {
		return err
	}
	java, err := e.javaWithExpired(dir, s, nil, 2)
	if err != nil {
		return err
	}
	report, ours, err := e.opened(s.options(dir))
	if err != nil {
		return err
	}
	return errors.Join(noticed(report), differs("ours", ours, java))
}

func javaDeletedTopic(e *env) error {
	s := usual()
	dir := e.dir()
	groups := append(some(0, 100), several(50, func(i int, m *stratalog.Message) { m.Topic = "doomed" })...)
	all, ours, err := e.weWrite(s.options(dir), groups, nil, nil)
	if err != nil {
		return err
	}
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	err = store.DeleteTopics(e.ctx, "doomed")
	if err = errors.Join(err, store.Shutdown(e.ctx)); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "consumequeue", "doomed")); err == nil {
		return errors.New("java did not delete the queues")
	}
	report, again, err := e.opened(s.options(dir))
	if err != nil {
		return err
	}
	// The log still holds the records: the queues are made anew, and the report
	// says so.
	if report.QueueTally == "" {
		err = errors.New("that queues were deleted was not noticed")
	}
	return errors.Join(err, differs("again", again, ours), holds(again, all))
}

// javaTruncated: Java cuts our log so many records before its end, puts as many
// other ones, and exits. Java's cut is one in memory: what stands behind stays, in
// the last segment that is kept. Either we see what Java then sees, and say that
// it was another program; or we refuse, with the place. What must not happen is
// that we see something else.
func javaTruncated(e *env, back, puts int) error {
	s := usual()
	dir := e.dir()
	all, _, err := e.weWrite(s.options(dir), some(0, 400), nil, nil)
	if err != nil {
		return err
	}
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return err
	}
	cut := all[len(all)-back]
	ok, err := store.Truncate(e.ctx, cut.phy)
	if err == nil && !ok {
		err = errors.New("java did not truncate")
	}
	if err == nil {
		_, err = e.javaPuts(store, some(5000, puts))
	}
	if err == nil {
		err = store.Wait(e.ctx)
	}
	if err = errors.Join(err, store.Shutdown(e.ctx)); err != nil {
		return err
	}
	copied := e.dir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return err
	}
	java, err := e.javaReads(copied, s)
	if err != nil {
		return err
	}
	report, ours, err := e.opened(s.options(dir))
	var damage *contract.CorruptionError
	switch {
	case errors.As(err, &damage):
		e.note = fmt.Sprintf("we refuse: %v", damage.Cause)
		if !damage.Lost.Contains(stratalog.Offset(cut.phy)) && int64(damage.Lost.Start) < cut.phy {
			return fmt.Errorf("refused, and not for what was cut at %d: %w", cut.phy, err)
		}
		return nil
	case err != nil:
		return err
	}
	e.note = fmt.Sprintf("we open: %s, %s", report.Log.Start, report.Log.Tail)
	if err := differs("ours", ours, java); err != nil {
		return err
	}
	if puts == 0 && ours.records() == len(all) {
		return nil // nothing was lost: the bytes that Java let go of are all there
	}
	return noticed(report)
}
