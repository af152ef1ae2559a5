package index

import (
	"errors"
	"io/fs"
	"math"
	"path"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// pendingKey is an entry to be.
type pendingKey struct {
	phy, time int64
	hash      int32
}

// Apply notes the keys of a record. Readers find it after Commit. Records of
// transactions that were rolled back have none.
func (s *Store) Apply(id contract.RecordID, rec *codec.MessageView) error {
	if err := s.checkWritable(contract.OpDispatch); err != nil {
		return err
	}
	phy := int64(id.Offset)
	for n := len(s.pending); n > 0 && s.pending[n-1].phy >= phy; n-- {
		s.pending = s.pending[:n-1] // A batch that failed half-way comes again.
	}
	if phy < 0 || rec.SysFlag()&codec.SysFlagTransaction == codec.SysFlagTransactionRollback {
		return nil
	}
	hashes, tagged := s.keys.of(rec)
	if tagged && !s.opts.Tags {
		hashes = hashes[:len(hashes)-1]
	}
	for _, hash := range hashes {
		s.pending = append(s.pending, pendingKey{phy: phy, time: rec.StoreTimestamp(), hash: hash})
	}
	return nil
}

// putRun is how many entries are put while readers wait.
const putRun = 256

// writeBehind is how many bytes of entries are collected until they are written.
const writeBehind = 256 << 10

// Commit puts what was applied into the index and shows it to readers. Little
// of it is written: a Flush does that, and the entries of a while at once. If it
// fails, what was applied since the last Commit is forgotten but for what is in,
// and the caller applies it again.
func (s *Store) Commit() error {
	if len(s.pending) == 0 {
		return nil
	}
	if err := s.checkWritable(contract.OpDispatch); err != nil {
		return err
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	defer func() { s.pending = s.pending[:0] }()
	if err := s.restore(); err != nil {
		return err
	}
	s.needImage()
	left := s.dropDone(s.pending)
	for len(left) > 0 {
		if s.act.f == nil || s.act.f.count() >= s.entries {
			if err := s.roll(); err != nil {
				return err
			}
		}
		run := left[:min(len(left), putRun, int(s.entries-s.act.f.count()))]
		if err := s.preload(run); err != nil {
			return err
		}
		if err := s.putAll(run); err != nil {
			return err
		}
		left = left[len(run):]
		if int64(len(s.act.buf))+s.act.bufAt-s.act.wrote >= writeBehind {
			if err := s.writeEntries(); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropDone leaves out the keys that have their entry.
func (s *Store) dropDone(keys []pendingKey) []pendingKey {
	done := 0
	for done < len(keys) && keys[done].phy < s.lastPhy {
		done++
	}
	for n := 0; done < len(keys) && keys[done].phy == s.lastPhy && n < s.lastKeys; n++ {
		done++
	}
	return keys[done:]
}

// preload reads the pages of the slots that the run needs, and brings the slots
// near. They lie far from each other, and to fetch one takes longer than all
// else that is done with it: side by side they are there sooner.
func (s *Store) preload(run []pendingKey) error {
	a := &s.act
	for i := range run {
		at := s.slotAt(int64(run[i].hash) % s.slots)
		b := a.image.from(at)
		if b == nil || a.loaded != nil {
			if err := s.loadPage(at / pageSize); err != nil {
				return err
			}
			b = a.image.from(at)
		}
		s.near ^= b[0]
	}
	return nil
}

// loadPage makes sure that a page of the image is there. Readers look at none
// that is not loaded.
func (s *Store) loadPage(page int64) error {
	a := &s.act
	at := page * pageSize
	if a.image.from(at) == nil {
		s.mu.Lock()
		a.image.make(s.layout, at)
		s.mu.Unlock()
	}
	if a.loaded == nil || a.loaded.has(page) {
		return nil
	}
	b := a.image.from(at)
	b = b[:min(pageSize, len(b))]
	err := s.with(a.f, contract.OpDispatch, func(h *handle) error { return h.readAt(b, at) })
	if err == nil {
		s.mu.Lock()
		a.loaded.set(page)
		s.mu.Unlock()
	}
	return err
}

// putAll puts the entries of the run, for which there is room.
func (s *Store) putAll(run []pendingKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = true
	for i := range run {
		if err := s.put(&run[i]); err != nil {
			return err
		}
	}
	return nil
}

// put puts one entry. Nothing fails here but what cannot.
func (s *Store) put(k *pendingKey) error {
	a := &s.act
	h := &a.f.head
	at := s.slotAt(int64(k.hash) % s.slots)
	place := a.image.from(at)
	previous := decodeSlot(place)
	if previous <= 0 || previous > a.f.count() {
		previous = 0
	}
	e := codec.IndexEntry{KeyHash: k.hash, PhysicalOffset: k.phy, TimeDiff: timeDiff(h.BeginTime, k.time), Previous: int32(previous)}
	var err error
	if a.buf, err = e.Append(a.buf); err != nil {
		return err
	}
	slot := codec.IndexSlot{Entry: h.Count}
	if _, err := slot.Encode(place); err != nil {
		return err
	}
	a.dirty.set(at / pageSize) // A slot lies in one page: all offsets are multiples of 4.
	if h.Count <= 1 {
		h.BeginPhysicalOffset, h.BeginTime = k.phy, k.time
	}
	if previous == 0 {
		h.UsedSlots++
	}
	h.Count++
	h.EndPhysicalOffset, h.EndTime = k.phy, k.time
	if k.phy == s.lastPhy {
		s.lastKeys++
	} else {
		s.lastPhy, s.lastKeys = k.phy, 1
	}
	return nil
}

// timeDiff is the seconds from begin to t, as Java has it.
func timeDiff(begin, t int64) int32 {
	if begin <= 0 {
		return 0
	}
	return int32(min(max((t-begin)/1000, 0), math.MaxInt32))
}

// roll ends the last file, if there is one, and begins a new one, of which
// nothing is made yet. If it fails nothing has changed.
func (s *Store) roll() error {
	a := &s.act
	var last *codec.IndexHeader
	if a.f != nil {
		if err := s.writeAll(); err != nil {
			return err
		}
		last = &a.f.head
	}
	before := ""
	if n := len(s.list); n > 0 {
		before = s.list[n-1].name
	}
	name := nextName(s.opts.Clock.Now(), before)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.f != nil {
		s.unsynced = append(s.unsynced, a.f)
		a.f.seal()
		a.image.clear()
		clear(a.dirty)
	}
	a.f = &file{name: name, path: path.Join(s.dir, name), size: s.fileSize(), head: emptyHead(last)}
	a.made, a.loaded, a.buf = false, nil, a.buf[:0]
	a.bufAt, a.wrote = s.entryAt(1), s.entryAt(1)
	s.show(append(s.list[:len(s.list):len(s.list)], a.f))
	return nil
}

// needImage makes room for the slots of the active file.
func (s *Store) needImage() {
	a := &s.act
	if a.image != nil {
		return
	}
	image, dirty := s.newImage(), newBits(s.pages())
	s.mu.Lock()
	a.image, a.dirty = image, dirty
	s.mu.Unlock()
	if cap(a.buf) < writeBehind {
		s.mu.Lock()
		a.buf = append(make([]byte, 0, writeBehind+putRun*entrySize+pageSize), a.buf...)
		s.mu.Unlock()
	}
}

// pages is the number of pages that header and slots take.
func (l layout) pages() int64 { return (l.headSize() + pageSize - 1) / pageSize }

// makeFile makes the active file, with the directory if need be.
func (s *Store) makeFile() error {
	a := &s.act
	h, err := s.files.create(a.f, s.fileSize())
	if errors.Is(err, fs.ErrNotExist) {
		if err = s.fs.MkdirAll(s.dir); err == nil {
			s.newDir = true
			h, err = s.files.create(a.f, s.fileSize())
		}
	}
	if err == nil {
		err = s.files.release(h)
	}
	if err != nil {
		return ioError(contract.OpDispatch, "make "+a.f.path, err)
	}
	s.newNames, a.made = true, true
	return nil
}
