package stratalog

import (
	"context"
	"errors"
	"fmt"

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
	// Kind is damage, wrong-unit, missing-unit, torn-tail, unpublished-tail,
	// lagging-lane, sidecar or unverified.
	Kind   string `json:"kind"`
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset"`
	// Lost is the range of the log that cannot be served.
	Lost *LostRange `json:"lost,omitempty"`
	Text string     `json:"text"`
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
	Notes      int64 `json:"notes"`
	Faults     int64 `json:"faults"`
	// End is where the log that was checked ends.
	End Offset `json:"end"`
}

// verifier is one run of Verify.
type verifier struct {
	r      *Reader
	ctx    context.Context
	report VerifyReport
	tell   func(Finding)
	// lane is where the queue lane's cursor stands; records behind it may
	// lack their unit.
	lane    contract.Offset
	lagging int64
	// damaged are the ranges of the log that were reported, ascending.
	damaged []contract.Range
	err     error
}

// Verify checks every record, every unit of every queue, and both against each
// other, and calls found for each finding, in order. Nothing is changed. The
// error says that the check itself could not be done.
func (r *Reader) Verify(ctx context.Context, found func(Finding)) (VerifyReport, error) {
	v := &verifier{r: r, ctx: ctx, tell: found}
	v.report.End = r.log.Confirmed()
	v.sidecar()
	counts, err := r.log.VerifyEach(r.log.MinOffset(), v.report.End, v.record, v.damage)
	v.report.Records, v.report.Bytes, v.report.Unverified = counts.Records, counts.Bytes, counts.Unverified
	if err = errors.Join(err, v.err); err != nil {
		return v.report, err
	}
	if counts.Unverified > 0 {
		v.note("unverified", fmt.Sprintf("%d records carry a checksum of the body only; the rest of them cannot be checked", counts.Unverified))
	}
	if v.lagging > 0 {
		v.note("lagging-lane", fmt.Sprintf("%d records behind the queue lane's position %d have no unit yet", v.lagging, v.lane))
	}
	if err := v.units(); err != nil {
		return v.report, err
	}
	v.tail()
	return v.report, nil
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
	cursor, found, err := v.r.log.LoadCursor(contract.LaneQueue)
	if err != nil || !found {
		return
	}
	if cursor, err = contract.ResolveCursor(cursor, v.r.log.Epochs()); err == nil {
		v.lane = cursor.Next
	}
}

// damage reports damage of the log.
func (v *verifier) damage(err error) bool {
	f := Finding{Severity: Fault, Kind: "damage", Text: err.Error()}
	var c *contract.CorruptionError
	if errors.As(err, &c) {
		f.File, f.Offset, f.Lost = c.File, c.Offset, &LostRange{c.Lost.Start, c.Lost.End}
		v.damaged = append(v.damaged, c.Lost)
	}
	v.add(f)
	return v.ctx.Err() == nil
}

// record checks that the record's queue has a unit for it.
func (v *verifier) record(m *codec.MessageView) bool {
	if v.err = v.ctx.Err(); v.err != nil {
		return false
	}
	if t := m.SysFlag() & codec.SysFlagTransactionMask; t != codec.TransactionNone && t != codec.TransactionCommit {
		return true
	}
	var unit [1]codec.QueueUnit
	topic, at := string(m.Topic()), m.QueueOffset()
	if at < v.r.queues.Min(topic, m.QueueID()) {
		return true
	}
	n, err := v.r.queues.Units(topic, m.QueueID(), at, unit[:])
	if err != nil {
		v.err = err
		return false
	}
	want := codec.QueueUnit{PhysicalOffset: m.PhysicalOffset(), Size: m.TotalSize()}
	if n == 1 && unit[0].PhysicalOffset == want.PhysicalOffset && unit[0].Size == want.Size {
		return true
	}
	if contract.Offset(m.PhysicalOffset()) >= v.lane {
		v.lagging++
		return true
	}
	file, place := v.r.queues.Place(topic, m.QueueID(), at)
	v.add(Finding{Severity: Fault, Kind: "missing-unit", File: file, Offset: place,
		Text: fmt.Sprintf("record %d of %s/%d at %d has no unit that leads to it", at, topic, m.QueueID(), m.PhysicalOffset())})
	return true
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
	end := v.r.queues.Max(topic, q)
	for at := v.r.queues.Min(topic, q); at < end; {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		n, err := v.r.queues.Units(topic, q, at, buf)
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		for i, u := range buf[:n] {
			v.report.Units++
			if err := v.unit(topic, q, at+int64(i), u); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return nil
}

// unit checks one unit. Damage of the record itself was reported already.
func (v *verifier) unit(topic string, q int32, at int64, u codec.QueueUnit) error {
	if cq.IsBlank(u) {
		return nil
	}
	var rec Record
	_, err := v.r.getter().record(Request{Topic: topic, QueueID: q}, u, at, &rec)
	found := rec.Held()
	wrong := ""
	switch {
	case err != nil && errors.Is(err, contract.ErrCorrupt):
		if !v.isDamaged(contract.Offset(u.PhysicalOffset)) {
			wrong = err.Error()
		}
	case err != nil:
		return err
	case !found && contract.Offset(u.PhysicalOffset) >= v.r.log.MinOffset():
		wrong = fmt.Sprintf("the unit leads to %d, where no record stands", u.PhysicalOffset)
	case found && codec.TagsCode(rec.Properties()) != u.TagsCode && topic != delayTopic:
		wrong = fmt.Sprintf("the unit's tags code is %d, the record's %d", u.TagsCode, codec.TagsCode(rec.Properties()))
	}
	rec.Release()
	if wrong != "" {
		file, place := v.r.queues.Place(topic, q, at)
		v.add(Finding{Severity: Fault, Kind: "wrong-unit", File: file, Offset: place, Text: fmt.Sprintf("unit %d of %s/%d: %s", at, topic, q, wrong)})
	}
	return nil
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

// delayTopic holds records whose units carry a delivery time as tags code.
const delayTopic = "SCHEDULE_TOPIC_XXXX"

// tail notes what stands beyond the end that was checked.
func (v *verifier) tail() {
	records, end, torn := v.r.log.Tail()
	if records > 0 {
		v.note("unpublished-tail", fmt.Sprintf("%d whole records in [%d,%d) lie beyond the published bound", records, v.report.End, end))
	}
	var c *contract.CorruptionError
	if errors.As(torn, &c) {
		v.add(Finding{Severity: Note, Kind: "torn-tail", File: c.File, Offset: c.Offset,
			Text: "the tail ends in something that is no record; the next open for writing cuts it: " + c.Error()})
	}
}
