package stratalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
)

// Severity says what a finding means.
type Severity string

const (
	// Note is a normal state worth knowing: a torn tail, a lane that is behind.
	Note Severity = "note"
	// Fault is damage, or an entry that leads to the wrong place.
	Fault Severity = "fault"
)

// Finding is one thing that Verify noticed.
type Finding struct {
	Severity Severity `json:"severity"`
	// Kind is damage, missing-segment, wrong-unit, missing-unit, wrong-entry,
	// missing-entry, or, of notes, missing-head, torn-tail, unpublished-tail,
	// lagging-lane, index-incomplete, sidecar, sidecar-slot or unverified.
	Kind   string `json:"kind"`
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset"`
	// Count is how many units in a row a missing-unit or wrong-unit stands for, or
	// how many keys a missing-entry; File and Offset are the place of the first.
	Count int64 `json:"count,omitempty"`
	// Lost is the range of the log that cannot be served.
	Lost *LostRange `json:"lost,omitempty"`
	// Text is for people. It does not repeat File and Offset.
	Text string `json:"text"`
}

// LostRange is the half-open range [Start, End) of the log.
type LostRange struct {
	Start Offset `json:"start"`
	End   Offset `json:"end"`
}

// VerifyReport counts what Verify looked at.
type VerifyReport struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// Unverified counts the records of which only the body is covered by a
	// checksum.
	Unverified int64 `json:"unverified"`
	Units      int64 `json:"units"`
	// Entries counts the entries of the key index.
	Entries int64 `json:"entries"`
	Notes   int64 `json:"notes"`
	Faults  int64 `json:"faults"`
	// End is where the log that was checked ends.
	End Offset `json:"end"`
}

// verifier is one run of Verify.
type verifier struct {
	r      *Reader
	ctx    context.Context
	report VerifyReport
	tell   func(Finding)
	// lane is where the queue lane's cursor stands, -1 if that is not known;
	// records behind it may lack their unit.
	lane    contract.Offset
	lagging int64
	// missing are the runs of missing units, by queue.
	missing map[queueKey]*unitRun
	// retiredBelow is up to where segments are known to have gone since the Reader
	// was opened.
	retiredBelow contract.Offset
	// damaged are the ranges of the log that were reported, ascending.
	damaged []contract.Range
	index   indexCheck
	err     error
}

// queueKey names a queue.
type queueKey struct {
	topic string
	queue int32
}

// unitRun is a run of units of one queue that one Finding stands for.
type unitRun struct {
	kind        string
	first, next int64
	// why tells what is wrong with the first.
	why string
}

// Verify checks every record, every unit of every queue and every entry of the
// key index, and all against each other, and calls found for each finding, in order. Nothing is changed. The
// error says that the check itself could not be done. found may call what reads,
// but neither Refresh nor Close, which wait for the end.
func (r *Reader) Verify(ctx context.Context, found func(Finding)) (VerifyReport, error) {
	r.checking.RLock()
	defer r.checking.RUnlock()
	if err := r.open(contract.OpVerify); err != nil {
		return VerifyReport{}, err
	}
	v := &verifier{r: r, ctx: ctx, tell: found, lane: -1, missing: map[queueKey]*unitRun{}}
	v.report.End = r.log.Confirmed()
	v.sidecar()
	v.files()
	v.beginIndex()
	counts, err := r.log.VerifyEach(r.log.MinOffset(), v.report.End, v.record, v.damage)
	v.report.Records, v.report.Bytes, v.report.Unverified = counts.Records, counts.Bytes, counts.Unverified
	if err = errors.Join(err, v.err); err != nil {
		return v.report, err
	}
	v.endRuns()
	if counts.Unverified > 0 {
		v.note("unverified", fmt.Sprintf("%d records carry a checksum of the body only; the rest of them cannot be checked", counts.Unverified))
	}
	if v.lagging > 0 {
		v.note("lagging-lane", v.lagText())
	}
	if err := errors.Join(v.units(), v.endIndex()); err != nil {
		return v.report, err
	}
	v.tail()
	return v.report, nil
}

func (v *verifier) lagText() string {
	if v.lane < 0 {
		return fmt.Sprintf("%d records have no unit yet; the queue lane's position is unknown, so the owner's next open looks for them", v.lagging)
	}
	return fmt.Sprintf("%d records behind the queue lane's position %d have no unit yet", v.lagging, v.lane)
}

func (v *verifier) add(f Finding) {
	if f.Severity == Fault {
		v.report.Faults++
	} else {
		v.report.Notes++
	}
	v.tell(f)
}

func (v *verifier) note(kind, text string) { v.add(Finding{Severity: Note, Kind: kind, Text: text}) }

// sidecar notes what cannot be known without it.
func (v *verifier) sidecar() {
	if !v.r.log.Bounded() {
		v.note("sidecar", "no published bound ("+v.r.log.Sidecar()+"): the log is checked up to its last valid record")
	}
	slots, cursors := v.r.log.SidecarDamage()
	for _, slot := range slots {
		f := finding(Note, "sidecar-slot", slot)
		f.Text += "; the file's other slot is whole and is used"
		v.add(f)
	}
	if cursors != nil {
		f := finding(Note, "sidecar", cursors)
		f.Text += ": where the lanes are is unknown, the owner's next open reads the whole log to find out"
		v.add(f)
	}
	cursor, found, err := v.r.log.LoadCursor(contract.LaneQueue)
	if err != nil || !found {
		return
	}
	if cursor, err = contract.ResolveCursor(cursor, v.r.log.Epochs()); err == nil {
		v.lane = cursor.Next
	}
}

// files reports segments that are missing, and files that are none.
func (v *verifier) files() {
	for _, fault := range v.r.log.Faults() {
		kind := "damage"
		if fault.Missing {
			kind = "missing-segment"
		}
		v.add(finding(Fault, kind, fault.Damage))
		v.lost(fault.Damage.Lost)
	}
	if first, known := v.r.log.FirstSegment(); known && len(v.r.log.Segments()) > 0 && first < v.r.log.MinOffset() {
		v.note("missing-head", fmt.Sprintf("the log starts at %d; when its owner last opened or closed it, it started at %d. Retention may have removed what lay between",
			v.r.log.MinOffset(), first))
	}
	if v.r.badQueues != nil {
		f := finding(Fault, "damage", v.r.badQueues)
		f.Text += "; the queues are not checked"
		v.add(f)
	}
}

// finding is the finding for an error. Its text leaves out what its other fields
// say.
func finding(severity Severity, kind string, err error) Finding {
	f := Finding{Severity: severity, Kind: kind, Text: err.Error()}
	var c *contract.CorruptionError
	if !errors.As(err, &c) {
		return f
	}
	f.File, f.Offset = c.File, c.Offset
	if !c.Lost.Empty() {
		f.Lost = &LostRange{c.Lost.Start, c.Lost.End}
	}
	f.Text = why(err)
	return f
}

// why is the text of err without the place that a *contract.CorruptionError
// names.
func why(err error) string {
	var c *contract.CorruptionError
	switch {
	case !errors.As(err, &c):
		return err.Error()
	case c.Cause == nil:
		return "damaged"
	case c.Lost.Empty():
		return c.Cause.Error()
	}
	return fmt.Sprintf("%v, lost range %v", c.Cause, c.Lost)
}

// lost remembers a range of the log that was reported as lost.
func (v *verifier) lost(r contract.Range) { v.damaged = append(v.damaged, r) }

// damage reports damage of the log.
func (v *verifier) damage(err error) bool {
	v.add(finding(Fault, "damage", err))
	var c *contract.CorruptionError
	if errors.As(err, &c) {
		v.lost(c.Lost)
	}
	return v.ctx.Err() == nil
}

// record checks that the record's queues have a unit for it.
func (v *verifier) record(m *codec.MessageView) bool {
	if v.err = v.ctx.Err(); v.err != nil || !v.recordIndex(m) {
		return false
	}
	t := m.SysFlag() & codec.SysFlagTransaction
	if t != codec.SysFlagTransactionNone && t != codec.SysFlagTransactionCommit || v.r.badQueues != nil {
		return true
	}
	if v.r.queues.IsBatch(string(m.Topic())) {
		v.batch(m)
		return v.err == nil
	}
	if !v.hasUnit(m, queueKey{string(m.Topic()), m.QueueID()}, m.QueueOffset()) {
		return v.err == nil
	}
	light := m.LightQueues()
	for name, at, ok := light.Next(); ok; name, at, ok = light.Next() {
		if v.r.queues.HasPlace(name, at) && !v.hasUnit(m, queueKey{string(name), codec.LightQueueID}, at) {
			break
		}
	}
	return v.err == nil
}

// hasUnit checks that unit at of q leads to m. It reports what is missing; false
// if the rest of m's units need not be looked at.
func (v *verifier) hasUnit(m *codec.MessageView, q queueKey, at int64) bool {
	var unit [1]codec.QueueUnit
	n, err := v.r.queues.Units(q.topic, q.queue, at, unit[:])
	if err != nil && !errors.Is(err, contract.ErrCorrupt) {
		v.err = err
		return false
	}
	if n == 1 && unit[0].PhysicalOffset == m.PhysicalOffset() && unit[0].Size == m.TotalSize() {
		return true
	}
	if contract.Offset(m.PhysicalOffset()) >= v.lane {
		v.lagging++
		return false
	}
	v.missed(q, at, m.PhysicalOffset())
	return true
}

// missed notes that the record at phy has no unit. Runs are told by queue.
func (v *verifier) missed(q queueKey, at, phy int64) {
	if v.retired(contract.Offset(phy)) {
		return
	}
	run := v.missing[q]
	if run != nil && run.next == at {
		run.next++
		return
	}
	if run != nil {
		v.endRun(q, run)
	}
	v.missing[q] = &unitRun{kind: "missing-unit", first: at, next: at + 1,
		why: fmt.Sprintf("no unit leads to its record at %d", phy)}
}

// retired reports whether the store's owner removed the record at off since the
// Reader was opened. Segments go first, and what leads to their records after them.
func (v *verifier) retired(off contract.Offset) bool {
	if off < v.r.log.MinOffset() || off >= v.report.End {
		return false // It was not there then.
	}
	if off >= v.retiredBelow {
		if _, err := v.r.opt.FS.Stat(v.r.log.File(off)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		size := contract.Offset(v.r.log.SegmentSize())
		v.retiredBelow = off/size*size + size
	}
	return true
}

// endRuns reports the runs of missing units, queue by queue.
func (v *verifier) endRuns() {
	keys := slices.SortedFunc(maps.Keys(v.missing), func(a, b queueKey) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.queue, b.queue))
	})
	for _, q := range keys {
		v.endRun(q, v.missing[q])
	}
}

// endRun reports a run.
func (v *verifier) endRun(q queueKey, run *unitRun) {
	file, place := v.r.queues.Place(q.topic, q.queue, run.first)
	if b := v.r.queues.Batch(q.topic, q.queue); b != nil {
		file, place = b.Place(run.first)
	} else if v.r.queues.IsBatch(q.topic) {
		file, place = v.r.queues.BatchDir(q.topic, q.queue), 0
	}
	f := Finding{Severity: Fault, Kind: run.kind, File: file, Offset: place, Count: run.next - run.first}
	f.Text = fmt.Sprintf("unit %d of %s/%d: %s", run.first, q.topic, q.queue, run.why)
	if f.Count > 1 {
		f.Text = fmt.Sprintf("%d units, %d to %d of %s/%d, the first: %s", f.Count, run.first, run.next-1, q.topic, q.queue, run.why)
	}
	v.add(f)
}

// units checks that every unit leads to its record.
func (v *verifier) units() error {
	buf := make([]codec.QueueUnit, 512)
	for _, topic := range v.r.queues.Topics() {
		for _, q := range v.r.queues.Queues(topic) {
			if err := v.queue(topic, q, buf); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verifier) queue(topic string, q int32, buf []codec.QueueUnit) error {
	if b := v.r.queues.Batch(topic, q); b != nil {
		return v.batchUnits(topic, q, b)
	}
	end := v.r.queues.Max(topic, q)
	key := queueKey{topic, q}
	var run *unitRun
	for at := v.r.queues.Min(topic, q); at < end; {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		n, err := v.r.queues.Units(topic, q, at, buf)
		if n == 0 && err != nil && !errors.Is(err, contract.ErrCorrupt) {
			return err
		}
		if n == 0 {
			if err != nil {
				v.add(finding(Fault, "damage", err))
			} else if first := v.r.queues.Min(topic, q); first > at {
				at = first
				continue
			}
			break
		}
		for i, u := range buf[:n] {
			v.report.Units++
			wrong, err := v.unit(topic, q, at+int64(i), u)
			if err != nil {
				return err
			}
			run = v.extend(key, run, at+int64(i), wrong)
		}
		at += int64(n)
	}
	v.extend(key, run, end, "")
	return nil
}

// extend adds the unit at an offset to run if it is wrong, else reports run; it
// returns the run to go on with.
func (v *verifier) extend(q queueKey, run *unitRun, at int64, wrong string) *unitRun {
	switch {
	case wrong != "" && run != nil:
		run.next++
		return run
	case wrong != "":
		return &unitRun{kind: "wrong-unit", first: at, next: at + 1, why: wrong}
	case run != nil:
		v.endRun(q, run)
	}
	return nil
}

// unit tells what is wrong with one unit, empty for nothing. Damage of the
// record itself was reported already.
func (v *verifier) unit(topic string, q int32, at int64, u codec.QueueUnit) (string, error) {
	if cq.IsBlank(u) || v.isDamaged(contract.Offset(u.PhysicalOffset)) {
		return "", nil
	}
	var rec Record
	defer rec.Release()
	found, err := v.r.getter().record(Request{Topic: topic, QueueID: q}, u, at, &rec)
	switch {
	case err != nil && errors.Is(err, contract.ErrCorrupt):
		var c *contract.CorruptionError
		if errors.As(err, &c) && c.Cause != nil {
			return c.Cause.Error(), nil
		}
		return err.Error(), nil
	case err != nil:
		return "", err
	case !found && v.retired(contract.Offset(u.PhysicalOffset)):
		return "", nil
	case !found:
		return fmt.Sprintf("the unit leads to %d, where no record stands", u.PhysicalOffset), nil
	case cq.IsExtAddress(u.TagsCode):
		return v.extUnit(topic, q, u, &rec)
	case topic == codec.ScheduleTopic && u.TagsCode >= rec.StoreTimestamp():
		// The time of delivery. Which levels the owner has is not known.
	case codec.TagsCode(rec.Properties()) != u.TagsCode:
		return fmt.Sprintf("the unit's tags code is %d, the record's %d", u.TagsCode, codec.TagsCode(rec.Properties())), nil
	}
	return "", nil
}

// extUnit tells what is wrong with the extension of a unit.
func (v *verifier) extUnit(topic string, q int32, u codec.QueueUnit, rec *Record) (string, error) {
	ext, err := v.r.queues.ExtUnit(topic, q, u.TagsCode)
	switch {
	case errors.Is(err, contract.ErrCorrupt):
		return "the unit's extension: " + err.Error(), nil
	case err != nil:
		return "", err
	case topic != codec.ScheduleTopic && ext.TagsCode != codec.TagsCode(rec.Properties()):
		return fmt.Sprintf("the tags code in the unit's extension is %d, the record's %d", ext.TagsCode, codec.TagsCode(rec.Properties())), nil
	case ext.StoreTime != rec.StoreTimestamp():
		return fmt.Sprintf("the store time in the unit's extension is %d, the record's %d", ext.StoreTime, rec.StoreTimestamp()), nil
	}
	return "", nil
}

// isDamaged reports whether off lies in damage that was reported already.
func (v *verifier) isDamaged(off contract.Offset) bool {
	for _, r := range v.damaged {
		if r.Contains(off) {
			return true
		}
	}
	return false
}

// closedTail judges what stands behind the last valid record of a log that was
// closed, and has no published bound. All that was acknowledged has its entry by
// then: if the last entry leads to the last valid record, nothing is lost.
func (v *verifier) closedTail(c *contract.CorruptionError, torn bool) {
	end := v.report.End
	switch {
	case v.r.led > end || torn && v.r.led < end:
		if !torn {
			c = &contract.CorruptionError{File: v.r.log.File(end), Offset: int64(end) % v.r.log.SegmentSize(),
				Cause: errors.New("queue entries lead to a record of which nothing is there: if none is missing, they are damaged")}
		}
		for _, u := range v.r.beyond {
			v.add(Finding{Severity: Fault, Kind: "wrong-unit", File: u.file, Offset: u.place, Count: 1,
				Text: fmt.Sprintf("unit %d of %s/%d: the unit leads to %d bytes at %d, and the log ends at %d", u.at, u.topic, u.queue, u.size, u.phy, end)})
		}
		c.Lost = contract.Range{Start: end, End: max(v.r.led, end+1)}
		v.add(finding(Fault, "damage", c))
	case torn:
		v.add(Finding{Severity: Note, Kind: "torn-tail", File: c.File, Offset: c.Offset,
			Text: "bytes that are no record stand behind the one that the last queue entry leads to; a broker leaves them when it recovers"})
	}
}

// tail notes what stands beyond the end that was checked.
func (v *verifier) tail() {
	records, end, torn := v.r.log.Tail()
	if records > 0 {
		v.note("unpublished-tail", fmt.Sprintf("%d whole records in [%d,%d) lie beyond the published bound", records, v.report.End, end))
	}
	var c *contract.CorruptionError
	if v.r.log.OpenEnded() && !v.r.unclean() {
		v.closedTail(c, errors.As(torn, &c))
		return
	}
	if errors.As(torn, &c) {
		v.add(Finding{Severity: Note, Kind: "torn-tail", File: c.File, Offset: c.Offset,
			Text: fmt.Sprintf("the tail ends in something that is no record; the next open for writing cuts it: %v", c.Cause)})
	}
}
