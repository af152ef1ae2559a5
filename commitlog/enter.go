package commitlog

import (
	"context"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// enter publishes end as the log's end and gets ready for appends behind it.
func (l *Log) enter(ctx context.Context, end, lastStoreTime int64) error {
	list := l.segs.Load()
	active := list.find(end)
	if active == nil && len(list.segs) == 0 {
		seg, err := l.makeSegment(ctx, end)
		if err != nil {
			return openError(contract.ComponentSegment, err)
		}
		active = seg
		l.segs.Store(list.with(seg))
	}
	var full error
	if active != nil {
		if err := active.file.Handle().Allocate(0, l.size); isDiskFull(err) {
			full = err
		} else if err != nil {
			return openError(contract.ComponentSegment, err)
		}
	}
	if err := l.markOpen(end); err != nil {
		return err
	}
	if err := l.side.putBound(end, end, l.window()); err != nil {
		return openError(contract.ComponentSidecar, err)
	}
	if err := l.side.syncBound(); err != nil {
		return openError(contract.ComponentSidecar, err)
	}
	lastStoreTime = max(lastStoreTime, l.storeTimeBefore(end))
	l.mu.Lock()
	l.tail, l.active = end, active
	l.activeChanged()
	l.unreserved, l.nextErr = full != nil, full
	l.lastStoreTime = lastStoreTime
	l.mu.Unlock()
	l.lower(end)
	l.hot.Store(min(l.hot.Load(), end))
	l.appended.Store(end)
	l.durable.Store(end)
	l.publish()
	l.report.Epoch = l.side.epoch()
	return nil
}

// lastRecordTime looks for the record of seg that ends at end, from the back. A
// body may hold what looks like one; the checksum over the whole of ours tells,
// and of other programs' the one that begins first holds the others.
func (l *Log) lastRecordTime(seg *segment, end int64) (int64, bool) {
	b, last := seg.file.Bytes(), int(end-seg.base)
	ranges := *l.ranges.Load()
	var v codec.MessageView
	time, found, least := int64(0), false, 0
	for hi := last; hi > least; {
		lo := max(0, hi-populatePiece/16)
		if err := seg.file.Populate(int64(lo), int64(hi-lo)); err != nil {
			return 0, false
		}
		// What is behind hi was brought in before: a magic there is looked at, too.
		piece := b[lo:last]
		for hit := codec.FindLastMessage(piece, hi-lo); hit >= 0; hit = codec.FindLastMessage(piece, hit) {
			at := lo + hit
			if size, _, _ := codec.PeekMessage(b[at:]); int64(size) > int64(last-at) {
				continue // it leads behind what was brought in
			}
			off := seg.base + int64(at)
			ours := ranges.contains(off)
			kind, size, _ := examine(&v, b[at:], off, ours)
			if kind != placeRecord {
				continue
			}
			total, magic, _ := codec.PeekMessage(b[at+size:])
			if at+size != last && !(end == seg.end() && magic == codec.BlankMagic && int(total) == len(b)-at-size) {
				continue
			}
			if time = v.StoreTimestamp(); ours {
				return time, true
			}
			if !found {
				found, least = true, max(0, at-int(l.maxRecord()))
			}
		}
		hi = lo
	}
	return time, found
}

// storeTimeBefore returns the store time of the record that ends at end; if it
// cannot be found, the latest of its segment.
func (l *Log) storeTimeBefore(end int64) int64 {
	list := l.segs.Load()
	seg := list.find(end - 1)
	if end <= list.min() || seg == nil {
		return 0
	}
	if t, ok := l.lastRecordTime(seg, end); ok {
		return t
	}
	t := int64(0)
	s := newScanner(list, *l.ranges.Load(), seg.base, end)
	for s.Next() {
		t = max(t, s.View().StoreTimestamp())
	}
	return t
}

// markOpen records, before anything is appended, that the log is being
// written, and from where on every record carries a checksum.
func (l *Log) markOpen(end int64) error {
	err := l.side.update(func(st *codec.State) {
		st.Clean = false
		st.FirstSegment, st.End = l.segs.Load().min(), end
		clipRanges(st, end)
		if l.report.Foreign {
			closeRange(st, l.side.bound.Durable)
		}
		if l.opt.NoRecordChecksum {
			closeRange(st, end)
		} else {
			openRange(st, end)
		}
	})
	ranges := l.side.ranges()
	l.ranges.Store(&ranges)
	return err
}

// markClean records that the log was closed with everything done.
func (l *Log) markClean() error {
	end := l.durable.Load()
	if err := l.side.putBound(end, end, l.window()); err != nil {
		return err
	}
	if err := l.side.syncBound(); err != nil {
		return err
	}
	err := l.side.update(func(st *codec.State) {
		st.Clean = true
		st.FirstSegment, st.End = l.segs.Load().min(), end
		st.EndCRC = fingerprint(l.segs.Load(), end)
		closeRange(st, end)
	})
	if err != nil {
		return err
	}
	return l.side.bothSlots()
}

// LoadQueueOffsets asks the offset source for the next offset of every queue.
// It must be called between Open and Start; with nil the log is scanned.
func (l *Log) LoadQueueOffsets(source OffsetSource) error {
	if source == nil {
		source = scanOffsets{}
	}
	table := newQueueTable()
	err := source.QueueOffsets(l, contract.Offset(l.tail), func(topic string, id int32, next int64) {
		q := table.queue(topic, id)
		q.next = max(q.next, next)
		q.topic.kind = kindPlain
	})
	if err != nil {
		return openError(contract.ComponentLog, err)
	}
	if kinds, ok := source.(BatchSource); ok {
		for _, topic := range kinds.BatchTopics() {
			table.topic(topic).kind = kindBatch
		}
	}
	l.mu.Lock()
	l.queues = table
	l.mu.Unlock()
	return nil
}
