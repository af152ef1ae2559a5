package cq

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// sectorSize is the smallest piece that a disk writes whole.
const sectorSize = 512

// Check reports whether the log holds, at u's place and of u's size, the record
// that is number offset of the queue. "No" is an answer and not an error; an
// error means that the log could not be read.
type Check func(topic string, queue int32, offset int64, u codec.QueueUnit) (bool, error)

// TruncateReport says what TruncateAbove did.
type TruncateReport struct {
	// Replay is where the replay of the log has to start: the limit, or lower
	// if units of records below the limit are lost. 0 stands for the log's
	// start.
	Replay contract.Offset
	// Lost lists the queues that made Replay lower than the limit.
	Lost []Suspect
	// Queues counts the queues that were cut, Units the committed units that
	// went with that, Files the files removed.
	Queues int
	Units  int64
	Files  int
	// Torn counts units that the log disproved.
	Torn int
}

// TruncateAbove makes the queues what they were when only the records wholly
// below limit existed. An owner calls it after Open, when the log's end is
// known and before anything is applied:
//
//   - After an orderly stop, with the log's end and a nil check. Only queues
//     with units above the limit, and suspect ones, are touched; blank units
//     stay.
//   - After anything else, with the lower of the log's end and the lane's
//     cursor, and a check. Every queue's tail is zeroed and synced.
//
// If the replay has to start below limit, lower is called with its start before
// anything is changed; it makes the lane's cursor say so, durably. The cuts
// take the evidence away, and a second power cut before the replay is flushed
// would else leave units missing below the cursor. lower may be nil.
//
// With ReadOnly only the ends in memory move, and lower is not called.
func (s *Store) TruncateAbove(
	limit contract.Offset, check Check, lower func(replay contract.Offset) error,
) (TruncateReport, error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	c := &cutter{s: s, limit: int64(limit), check: check}
	c.report.Replay = limit
	s.tallyFlushed(0, -1)
	s.dropRuns()
	s.dropBatchRuns()
	var cuts []cut
	var batchCuts []batchCut
	for _, q := range s.allBatches() {
		cut, err := c.planBatch(q)
		if err != nil {
			return c.report, err
		}
		batchCuts = append(batchCuts, cut)
	}
	for _, q := range s.all() {
		if check == nil && len(q.suspects) == 0 && q.maxPhy.Load() <= int64(limit) {
			continue
		}
		cut, err := c.plan(q)
		if err != nil {
			return c.report, err
		}
		cuts = append(cuts, cut)
	}
	if c.report.Replay < limit && lower != nil && !s.opts.ReadOnly {
		if err := lower(c.report.Replay); err != nil {
			return c.report, err
		}
	}
	var errs []error
	for _, cut := range cuts {
		errs = append(errs, c.do(cut))
	}
	for _, cut := range batchCuts {
		errs = append(errs, c.doBatch(cut))
	}
	s.recountMaxPhy()
	return c.report, errors.Join(errs...)
}

// RollBack cuts the units of records above to, at run time, after the log was
// cut there. The lane must stand still.
func (s *Store) RollBack(to contract.Offset) error {
	_, err := s.TruncateAbove(to, nil, nil)
	return err
}

func (s *Store) recountMaxPhy() {
	largest := int64(0)
	for _, q := range s.all() {
		largest = max(largest, q.maxPhy.Load())
	}
	for _, q := range s.allBatches() {
		largest = max(largest, q.lastEnd.Load())
	}
	s.maxPhy.Store(largest)
}

// cutter is one run of TruncateAbove.
type cutter struct {
	s      *Store
	limit  int64
	check  Check
	report TruncateReport
}

// cut is what is to be done to one queue.
type cut struct {
	q   *queue
	end int64
	// real is set if the unit of a record stands below end.
	real bool
}

// plan finds a queue's new end and what it lost, and changes nothing.
func (c *cutter) plan(q *queue) (cut, error) {
	q.holes = q.holes[:0]
	end, real, err := c.end(q)
	if err == nil && c.check != nil && c.s.ext.present && real {
		if bad, found, failed := c.extDamage(q, end); failed != nil {
			err = failed
		} else if found {
			end = bad
			_, _, real, err = c.s.lastReal(q, end)
		}
	}
	if err == nil {
		err = c.noteLoss(q, end)
	}
	return cut{q, end, real}, err
}

func (c *cutter) do(todo cut) error {
	q, end := todo.q, todo.end
	was := q.end.Load()
	gone := !todo.real && (c.check != nil || was > end || q.count.Load() == 0)
	q.suspects = nil
	if was > end {
		c.report.Queues++
		c.report.Units += was - end
	}
	if c.s.opts.ReadOnly {
		return c.show(q, end, gone)
	}
	if gone {
		return c.forget(q)
	}
	return c.trim(q, end, c.check != nil || was > end)
}

// end finds the queue's new end, and whether a unit of a record stands below.
func (c *cutter) end(q *queue) (end int64, real bool, err error) {
	bound := int64(noLimit)
	for {
		end, err = c.s.findEnd(q, c.limit, bound)
		if err == nil && c.check != nil {
			err = c.noteGarbage(q, end)
		}
		if err != nil {
			return 0, false, err
		}
		i, u, ok, err := c.s.lastReal(q, end)
		if err != nil || !ok {
			return end, false, err
		}
		if c.check == nil && end == q.end.Load() {
			return end, true, nil
		}
		// Blank units behind the last record may be left of a batch of
		// which the rest is lost. If not, they are filled in again.
		if c.check == nil || !crossesSector(i%c.s.unitsPerFile*unitSize) {
			return i + 1, true, nil
		}
		found, err := c.check(q.topic, q.id, i, u)
		if err != nil || found {
			return i + 1, true, err
		}
		c.report.Torn++
		bound = i
	}
}

// crossesSector reports whether the unit at byte at of a file crosses the edge of
// a sector. A file starts at one.
func crossesSector(at int64) bool { return at/sectorSize != (at+unitSize-1)/sectorSize }

// noteLoss lowers the replay's start if units of records below the limit were
// there once and are not any more.
func (c *cutter) noteLoss(q *queue, end int64) error {
	_, u, ok, err := c.s.lastReal(q, end)
	if err != nil {
		return err
	}
	from := contract.Offset(0)
	if ok {
		from = contract.Offset(endOf(u))
	}
	lost := false
	for i := range q.suspects {
		p := &q.suspects[i]
		p.Next, p.From = end, from
		switch p.Reason {
		case EmptyFile, ShortFile, NoFile, Garbage:
			lost = true
		case MissingFile, Hole, FullTail:
			// Told by what stands behind.
		}
	}
	behind := append(slices.Clone(q.holes), unitsOf(q.orphans)...)
	for _, base := range behind {
		if lost {
			break
		}
		if lost, err = c.provesLoss(q, base); err != nil {
			return err
		}
	}
	if lost {
		c.report.Replay = min(c.report.Replay, from)
		c.report.Lost = append(c.report.Lost, q.suspects...)
	}
	return nil
}

// pastLimitMax is how far above the limit a unit's record may lie, and
// pastSizeMax how large it may be, for the unit to count as one that was being
// written.
const (
	pastLimitMax = 1 << 40
	pastSizeMax  = 1 << 30
)

// noteGarbage looks at the unit behind the end. Zeros, a blank unit, the unit
// of a record above the limit, and a torn one are what a power cut leaves. A
// disk that leaves anything else damaged the sector, and with it units that
// were durable.
func (c *cutter) noteGarbage(q *queue, end int64) error {
	k := end % c.s.unitsPerFile
	if crossesSector(k * unitSize) {
		// It may be torn. If its second sector is damaged, so is the next.
		end, k = end+1, k+1
	}
	if k == c.s.unitsPerFile || q.count.Load() == 0 || c.s.fileOf(end) > c.s.lastStart(q) {
		return nil
	}
	u, err := c.s.unitAt(q, end)
	if err != nil || u == (codec.QueueUnit{}) || IsBlank(u) {
		return err
	}
	if u.PhysicalOffset < c.limit-pastSizeMax || u.PhysicalOffset-c.limit > pastLimitMax ||
		u.Size <= 0 || u.Size > pastSizeMax {
		q.suspect(Garbage, q.path(c.s.fileOf(end)))
	}
	return nil
}

func unitsOf(starts []int64) []int64 {
	out := make([]int64, len(starts))
	for i, start := range starts {
		out[i] = start / unitSize
	}
	return out
}

// provesLoss reports whether the file at unit base begins with the unit of a
// record below the limit: it is not torn, since a file starts with a sector.
func (c *cutter) provesLoss(q *queue, base int64) (bool, error) {
	_, u, ok, err := c.s.realFrom(q, base, base+c.s.unitsPerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && ok && valid(u) && endOf(u) <= c.limit, err
}

// trim removes the files behind end and zeroes what is left behind it.
func (c *cutter) trim(q *queue, end int64, zero bool) error {
	s := c.s
	if err := c.removeOrphans(q); err != nil {
		return err
	}
	lastKept := q.first.Load()
	if end*unitSize > lastKept {
		lastKept = s.fileOf(end - 1)
	}
	s.extForget(q)
	q.cuts.Add(1)
	defer q.cuts.Add(1)
	// Readers stop at the end before the files go.
	q.end.Store(min(q.end.Load(), end))
	removed := false
	for q.count.Load() > 1 && s.lastStart(q) > lastKept {
		start := s.lastStart(q)
		q.count.Add(-1)
		if err := s.removeFile(q, start); err != nil {
			return err
		}
		c.report.Files++
		removed = true
	}
	if removed {
		if err := s.fs.SyncDir(q.dir); err != nil {
			return ioError(contract.OpTruncate, "sync "+q.dir, err)
		}
	}
	if q.short || zero {
		if err := c.zeroTail(q, lastKept, end*unitSize-lastKept); err != nil {
			return err
		}
	}
	q.short = false
	if q.isDirty {
		q.dirtyHi = min(q.dirtyHi, lastKept)
		q.dirtyLo = min(q.dirtyLo, q.dirtyHi)
	}
	if c.check != nil {
		// What the process before made may not be durable by name.
		q.dirtyNames = true
		s.dirtyTopics[q.topic] = struct{}{}
		s.dirtyRoot = true
	}
	if err := s.settle(q, end); err != nil || c.check == nil {
		return err
	}
	return s.extSettle(q)
}

// show moves the end in memory only.
func (c *cutter) show(q *queue, end int64, gone bool) error {
	if gone {
		q.end.Store(0)
		q.maxPhy.Store(0)
		q.count.Store(0)
		return nil
	}
	return c.s.settle(q, end)
}

// zeroTail makes everything from byte at of the file on read as zero, brings
// the file to its length, and syncs it.
func (c *cutter) zeroTail(q *queue, start, at int64) error {
	s := c.s
	h, err := s.files.acquire(q, start)
	if err != nil {
		return ioError(contract.OpTruncate, "open "+q.path(start), err)
	}
	err = h.file.Truncate(s.opts.FileSize)
	if err == nil && at < s.opts.FileSize {
		err = h.file.PunchHole(at, s.opts.FileSize-at)
		if errors.Is(err, errors.ErrUnsupported) {
			err = writeZeros(h, at, s.opts.FileSize)
		}
	}
	if err == nil {
		err = h.file.Sync()
	}
	if err = errors.Join(err, s.files.release(h)); err != nil {
		return ioError(contract.OpTruncate, "zero the tail of "+q.path(start), err)
	}
	return nil
}

func writeZeros(h *handle, from, to int64) error {
	var zeros [4096]byte
	for from < to {
		n := min(to-from, int64(len(zeros)))
		if _, err := h.file.WriteAt(zeros[:n], from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

func (c *cutter) removeOrphans(q *queue) error {
	for _, start := range slices.Backward(q.orphans) {
		if err := c.s.removeFile(q, start); err != nil {
			return err
		}
		c.report.Files++
	}
	if len(q.orphans) > 0 {
		q.orphans = nil
		if err := c.s.fs.SyncDir(q.dir); err != nil {
			return ioError(contract.OpTruncate, "sync "+q.dir, err)
		}
	}
	return nil
}

// forget removes a queue that has no record left.
func (c *cutter) forget(q *queue) error {
	if err := c.removeOrphans(q); err != nil {
		return err
	}
	c.report.Files += int(q.count.Load())
	return c.s.removeQueue(q)
}

// removeQueue removes a queue's files, last first, and its directory.
func (s *Store) removeQueue(q *queue) error {
	q.end.Store(0)
	if err := s.removeFiles(q); err != nil {
		return err
	}
	if err := s.extDrop(q); err != nil {
		return err
	}
	s.dropQueue(q)
	s.dirty = slices.DeleteFunc(s.dirty, func(d *queue) bool { return d == q })
	topicDir := path.Dir(q.dir)
	if err := s.removeDir(q.dir, topicDir); err != nil {
		return err
	}
	if entries, err := s.list(topicDir); err != nil || len(entries) > 0 {
		return err
	}
	delete(s.dirtyTopics, q.topic)
	return s.removeDir(topicDir, s.dir)
}

// removeDir removes dir, unless somebody else keeps something in it.
func (s *Store) removeDir(dir, parent string) error {
	if entries, err := s.list(dir); err != nil || len(entries) > 0 {
		return err
	}
	if err := s.fs.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioError(contract.OpTruncate, "remove "+dir, err)
	}
	if err := s.fs.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioError(contract.OpTruncate, "sync "+parent, err)
	}
	return nil
}

// removeFiles removes all files of a queue, last first.
func (s *Store) removeFiles(q *queue) error {
	q.cuts.Add(1)
	defer q.cuts.Add(1)
	s.extForget(q)
	for q.count.Load() > 0 {
		start := s.lastStart(q)
		q.count.Add(-1)
		if err := s.removeFile(q, start); err != nil {
			return err
		}
	}
	if err := s.fs.SyncDir(q.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ioError(contract.OpTruncate, "sync "+q.dir, err)
	}
	return nil
}

func (s *Store) removeFile(q *queue, start int64) error {
	err := s.files.forget(q, start)
	if e := s.fs.Remove(q.path(start)); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	// Once more, for a reader that opened it in between.
	err = errors.Join(err, s.files.forget(q, start))
	if err != nil {
		return ioError(contract.OpTruncate, "remove "+q.path(start), err)
	}
	return nil
}

// DropAll removes every queue, for a rebuild from the log. The owner lowers the
// lane's cursor first: a crash in the middle then only leaves units that the
// replay writes again.
func (s *Store) DropAll() error {
	if err := s.checkWritable(contract.OpTruncate); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	s.dropRuns()
	s.dropBatchRuns()
	c := &cutter{s: s}
	var errs []error
	for _, q := range s.all() {
		errs = append(errs, c.forget(q))
	}
	for _, q := range s.allBatches() {
		errs = append(errs, s.cutBatch(q, q.q.first.Load()/batchUnitSize))
	}
	s.recountMaxPhy()
	s.incomplete.Store(false)
	return errors.Join(errs...)
}
