package stratalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
)

// ReaderOptions configures a Reader.
type ReaderOptions struct {
	// Appended reads on to the last valid record, beyond what the owner
	// published as durable.
	Appended bool
	// Salvage opens what is there of a store of which segments are missing, or
	// that holds files that are none: for Verify, which reports them, and
	// Inspect. Without it such a store is a *contract.CorruptionError.
	Salvage bool
	// FollowEvery is how often a Follow looks for what the owner published.
	// Default 50 ms.
	FollowEvery time.Duration
}

// defaultFollowEvery is the default of ReaderOptions.FollowEvery.
const defaultFollowEvery = 50 * time.Millisecond

// Reader reads a store's directory without owning it: it takes no lock and
// changes nothing, so it works beside a running store, on a read-only mount,
// and on what a crash left. It sees what was published when it was opened or
// last refreshed. Its methods are safe for concurrent use; Refresh and Close wait
// until a Verify has ended. After Close they return contract.ErrClosed; when the
// owner cut the log since the last Refresh they may return contract.ErrStale.
type Reader struct {
	opt Options
	ro  ReaderOptions

	// checking is held by a Verify, and by Refresh and Close against it; mu by
	// each call that reads, and by Refresh and Close while they change what
	// stands below. checking comes first.
	checking sync.RWMutex
	mu       sync.RWMutex
	log      *commitlog.ReadOnly
	queues   *cq.Store
	// badQueues says, when salvaging, why there are no queues.
	badQueues error
	index     indexView
	// led is where the record ends that the last queue entry leads to, also if that
	// lies beyond the end; beyond are the entries that lead there, in a closed log
	// of which no bound is known.
	led    Offset
	beyond []ledUnit
	// settled tells that the queues were opened when their lane was at the end of
	// the log, or nobody was there to go on with it: until there is more of the
	// log, there is no more in them.
	settled bool
	// looked is when Refresh last looked, opened when it last opened the queues, by
	// the monotonic clock, and opening how long that took.
	looked, opened, opening time.Duration
	closed                  atomic.Bool
}

// OpenReader opens the store in opt.Dir for reading. Of opt only Dir,
// SegmentSize, QueueFileSize, ExtendedFileSize, BatchQueueFileSize, MaxQueueFiles,
// IndexSlots, IndexEntries, IndexTags, NoVerifyReads, FS and Clock count. A
// directory that does not exist or holds no store is contract.ErrNotFound; one
// with segments missing, also below the published bound, is a
// *contract.CorruptionError that names the first of them and what is lost.
func OpenReader(ctx context.Context, opt Options, ro ReaderOptions) (*Reader, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &Reader{opt: opt.withDefaults(), ro: ro}
	if ro.FollowEvery < 0 {
		return nil, invalid("FollowEvery %v is negative", ro.FollowEvery)
	}
	if ro.FollowEvery == 0 {
		r.ro.FollowEvery = defaultFollowEvery
	}
	var err error
	if info, err := r.opt.FS.Stat(r.opt.Dir); err == nil && !info.IsDir {
		return nil, invalid("%s is not a directory", r.opt.Dir)
	}
	open := commitlog.OpenReadOnly
	if ro.Salvage {
		open = commitlog.OpenSalvage
	}
	logOpt := r.opt.log()
	logOpt.Stranger = r.stranger()
	if r.log, err = open(logOpt, ro.Appended); err != nil {
		return nil, err
	}
	r.settled = r.isSettled()
	if r.queues, err = r.openQueues(); err != nil {
		return nil, errors.Join(err, r.log.Close())
	}
	r.index = r.openIndex()
	r.looked = r.opt.Clock.Mono()
	return r, nil
}

// stranger tells whether a Java broker has started here since our store was opened
// last. Unlike Store it may not open the lock file, as where locks belong to
// processes closing it would give up the lock of a store in this one.
func (r *Reader) stranger() bool {
	info, err := r.opt.FS.Stat(path.Join(r.opt.Dir, lockName))
	return err == nil && info.Size > 0
}

// unclean tells whether the store is open, or was not closed.
func (r *Reader) unclean() bool {
	_, err := r.opt.FS.Stat(path.Join(r.opt.Dir, abortName))
	return err == nil
}

// openTries is how often opening the queues begins anew because their owner removed
// files under it.
const openTries = 10

// openQueues opens the consume queues and leaves out, in memory, what lies
// beyond the log that may be seen.
func (r *Reader) openQueues() (queues *cq.Store, err error) {
	for range openTries {
		if queues, err = r.openQueuesOnce(); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return queues, err
}

func (r *Reader) openQueuesOnce() (*cq.Store, error) {
	opt := cq.Options{MaxHandles: r.opt.MaxQueueFiles, ExtFileSize: r.opt.ExtendedFileSize,
		BatchFileSize: r.opt.BatchQueueFileSize, ReadOnly: true}
	var err error
	if opt.FileSize, err = queueFileSize(r.opt); err != nil {
		return r.noQueues(opt, err)
	}
	queues, err := cq.Open(r.opt.FS, path.Join(r.opt.Dir, queueDirName), opt)
	if err != nil {
		return r.noQueues(opt, err)
	}
	r.badQueues = nil
	r.led, r.beyond = queues.MaxPhysical(), nil
	// Entries that lead beyond the last valid record, or bytes there that are none,
	// tell that there may be more.
	if _, _, torn := r.log.Tail(); torn != nil && r.led != r.log.Confirmed() || r.led > r.log.Confirmed() {
		if err := r.log.PassOver(); err != nil {
			return nil, errors.Join(err, queues.Close())
		}
	}
	if r.led > r.log.Confirmed() && r.log.OpenEnded() && !r.unclean() {
		if r.beyond, err = ledBeyond(queues, r.log.Confirmed()); err != nil {
			return nil, errors.Join(err, queues.Close())
		}
	}
	if _, err := queues.TruncateAbove(r.log.Confirmed(), nil, nil); err != nil {
		return nil, errors.Join(err, queues.Close())
	}
	if err := queues.CorrectMin(r.log.MinOffset()); err != nil {
		return nil, errors.Join(err, queues.Close())
	}
	return queues, nil
}

// ledUnit is a unit that leads beyond the end of the log.
type ledUnit struct {
	queueKey
	at    int64 // Its number, of a batch queue counted from the queue's start.
	file  string
	place int64
	phy   int64
	size  int32
}

// ledBeyond returns the last unit of each queue of which it leads beyond end.
func ledBeyond(queues *cq.Store, end Offset) (out []ledUnit, err error) {
	for _, topic := range queues.Topics() {
		for _, id := range queues.Queues(topic) {
			u := ledUnit{queueKey: queueKey{topic, id}}
			n := 0
			if b := queues.Batch(topic, id); b != nil {
				var unit [1]codec.BatchUnit
				_, last := b.Span()
				u.at = last - 1
				u.file, u.place = b.UnitPlace(u.at)
				n, err = b.UnitsFrom(u.at, unit[:])
				u.phy, u.size = unit[0].PhysicalOffset, unit[0].Size
			} else {
				var unit [1]codec.QueueUnit
				u.at = queues.Max(topic, id) - 1
				u.file, u.place = queues.Place(topic, id, u.at)
				n, err = queues.Units(topic, id, u.at, unit[:])
				u.phy, u.size = unit[0].PhysicalOffset, unit[0].Size
			}
			if err != nil && !errors.Is(err, contract.ErrCorrupt) {
				return nil, err
			}
			if n == 1 && err == nil && Offset(u.phy)+Offset(u.size) > end {
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// noQueues goes on without queues when salvaging from a store whose queues are
// damaged so that they cannot be opened.
func (r *Reader) noQueues(opt cq.Options, err error) (*cq.Store, error) {
	if !r.ro.Salvage || !errors.Is(err, contract.ErrCorrupt) {
		return nil, err
	}
	r.badQueues = err
	opt.FileSize = 0
	return cq.Open(r.opt.FS, path.Join(r.opt.Dir, commitlog.SidecarDir, noQueuesName), opt)
}

// noQueuesName is a directory that is never made.
const noQueuesName = "no-queues"

// queueFileSize returns the length that queue files have, 0 for the default.
func queueFileSize(opt Options) (int64, error) {
	if opt.QueueFileSize != 0 {
		return opt.QueueFileSize, nil
	}
	size, _, err := cq.DetectFileSize(opt.FS, path.Join(opt.Dir, queueDirName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return size, err
}

// open returns nil while r is open.
func (r *Reader) open(op contract.Operation) error {
	if r.closed.Load() {
		return contract.NewError(contract.KindClosed, op, contract.ComponentStore, "the reader is closed", nil)
	}
	return nil
}

// Refresh takes up what a running owner published since. It waits until a Verify
// has ended.
func (r *Reader) Refresh(ctx context.Context) error {
	r.checking.Lock()
	defer r.checking.Unlock()
	return r.refresh(ctx, false)
}

// pollShare is how much of the time may go into opening queues only to see whether
// their lane has come nearer to the end: a part of this many.
const pollShare = 20

// refresh is Refresh; the caller holds checking. Who polls comes again, and may be
// told of units that came late a little later.
func (r *Reader) refresh(ctx context.Context, polls bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.open(contract.OpRead), ctx.Err()); err != nil {
		return err
	}
	began, before := r.opt.Clock.Mono(), r.sight()
	defer func() { r.looked = r.opt.Clock.Mono() }()
	r.log.Stranger(r.stranger())
	if err := r.log.Refresh(); err != nil {
		return err
	}
	if r.sight() == before && (r.settled || polls && began-r.opened < pollShare*r.opening) {
		return nil
	}
	settled := r.isSettled()
	queues, err := r.openQueues()
	if err != nil {
		return err
	}
	old, oldIndex := r.queues, r.index
	r.queues, r.index, r.settled = queues, r.openIndex(), settled
	r.opened = r.opt.Clock.Mono()
	r.opening = r.opened - began
	return errors.Join(old.Close(), oldIndex.close())
}

// sight is what a Reader sees of the log. While it stays, the queues and the key
// index can only come nearer to it.
type sight struct {
	first, end Offset
	epoch      contract.Epoch
	index      Offset
}

func (r *Reader) sight() sight {
	cursor, _, _ := r.log.LoadCursor(contract.LaneIndex)
	return sight{first: r.log.MinOffset(), end: r.log.Confirmed(), epoch: r.log.Epoch(), index: cursor.Next}
}

// isSettled reports whether the queues that are opened next hold all that the log
// shows. An owner writes units after the bound is published, and one queue after
// the other; only its lane's cursor tells that it is through.
func (r *Reader) isSettled() bool {
	if !r.unclean() {
		return true
	}
	cursor, found, err := r.log.LoadCursor(contract.LaneQueue)
	return err == nil && found && cursor.Epoch == r.log.Epoch() && cursor.Next >= r.log.Confirmed()
}

func (r *Reader) getter() getter {
	return getter{log: r.log, queues: r.queues, index: r.index.store, noIndex: r.index.why,
		indexLoose: r.index.known, faults: r.log.Faults()}
}

// Get fills out with records of one queue; see Store.Get.
func (r *Reader) Get(ctx context.Context, req Request, out *Records) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if err := r.open(contract.OpRead); err != nil {
		if out != nil {
			out.clear()
			out.Next = req.Offset
		}
		return err
	}
	err := r.judged(contract.OpRead, r.getter().get(ctx, req, out))
	if errors.Is(err, contract.ErrStale) {
		out.clear()
		out.Next = req.Offset
	}
	return err
}

// judged is err, but for damage in a log that was cut since r looked, which need
// not be any.
func (r *Reader) judged(op contract.Operation, err error) error {
	if !errors.Is(err, contract.ErrCorrupt) || !r.log.CutSince() {
		return err
	}
	e := contract.NewError(contract.KindUnavailable, op, contract.ComponentStore, "the log was cut since this reader looked: refresh it and ask again", nil)
	e.Sentinel = contract.ErrStale
	return e
}

// GetAt fills out with the record at a physical offset; see Store.GetAt.
func (r *Reader) GetAt(_ context.Context, off Offset, out *Record) (bool, error) {
	if out == nil {
		return false, noTarget()
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if err := r.open(contract.OpRead); err != nil {
		out.Release()
		return false, err
	}
	found, err := r.log.Read(off, out)
	return found, r.judged(contract.OpRead, err)
}

// Topics returns the topics that have queues, sorted.
func (r *Reader) Topics() []string { return r.shown().Topics() }

// shown is the queues as last refreshed; what they know stays after a Close.
func (r *Reader) shown() *cq.Store {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.queues
}

// Queues returns the queue ids of topic, sorted.
func (r *Reader) Queues(topic string) []int32 { return r.shown().Queues(topic) }

// QueueRange returns the first live offset of a queue and its end.
func (r *Reader) QueueRange(topic string, queueID int32) (first, end int64) {
	queues := r.shown()
	return queues.Min(topic, queueID), queues.Max(topic, queueID)
}

// Close ends reading. Records under a lease stay valid until released. A second
// Close does nothing.
func (r *Reader) Close() error {
	r.checking.Lock()
	defer r.checking.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Swap(true) {
		return nil
	}
	return errors.Join(r.queues.Close(), r.index.close(), r.log.Close())
}

// SegmentInfo describes one log file.
type SegmentInfo struct {
	Base Offset `json:"base"`
	Size int64  `json:"size"`
	Path string `json:"path"`
}

// QueueInfo describes one consume queue.
type QueueInfo struct {
	Topic string `json:"topic"`
	Queue int32  `json:"queue"`
	Min   int64  `json:"min"`
	Max   int64  `json:"max"`
}

// CursorInfo describes the persisted cursor of a lane.
type CursorInfo struct {
	Lane  string         `json:"lane"`
	Epoch contract.Epoch `json:"epoch"`
	Next  Offset         `json:"next"`
	Error string         `json:"error,omitempty"`
}

// EpochInfo says where an epoch starts.
type EpochInfo struct {
	Epoch contract.Epoch `json:"epoch"`
	Start Offset         `json:"start"`
}

// RangeInfo is a range of the log; End is -1 while it is still being written.
type RangeInfo struct {
	Start Offset `json:"start"`
	End   Offset `json:"end"`
}

// Inspection describes a store's directory, as far as can be told without
// reading every record.
type Inspection struct {
	Dir         string        `json:"dir"`
	LogID       string        `json:"log_id,omitempty"`
	Sidecar     string        `json:"sidecar"`
	Unclean     bool          `json:"abort_file"`
	Stranger    bool          `json:"broker_since"`
	SegmentSize int64         `json:"segment_size"`
	Segments    []SegmentInfo `json:"segments"`
	MinOffset   Offset        `json:"min_offset"`
	End         Offset        `json:"end"`
	Bounded     bool          `json:"end_is_published_bound"`
	Epochs      []EpochInfo   `json:"epochs"`
	Checksummed []RangeInfo   `json:"checksummed_ranges"`
	Cursors     []CursorInfo  `json:"cursors"`
	Queues      []QueueInfo   `json:"queues"`
	// IndexSlots and IndexEntries are the sizes of a key index file, 0 if
	// there is no index.
	IndexSlots   int             `json:"index_slots,omitempty"`
	IndexEntries int             `json:"index_entries,omitempty"`
	IndexFiles   []IndexFileInfo `json:"index_files,omitempty"`
	// IndexError says why the key index cannot be read.
	IndexError string `json:"index_error,omitempty"`
}

// Inspect describes the directory.
func (r *Reader) Inspect() Inspection {
	r.mu.RLock()
	defer r.mu.RUnlock()
	in := Inspection{Dir: r.opt.Dir, Sidecar: r.log.Sidecar(), SegmentSize: r.log.SegmentSize(),
		MinOffset: r.log.MinOffset(), End: r.log.Confirmed(), Bounded: r.log.Bounded() && !r.ro.Appended && !r.stranger()}
	if id := r.log.ID(); id != ([16]byte{}) {
		in.LogID = fmt.Sprintf("%x", id)
	}
	in.Unclean, in.Stranger = r.unclean(), r.stranger()
	for _, s := range r.log.Segments() {
		in.Segments = append(in.Segments, SegmentInfo{Base: s.Base, Size: s.Size, Path: s.Path})
	}
	for _, e := range r.log.Epochs() {
		in.Epochs = append(in.Epochs, EpochInfo{Epoch: e.Epoch, Start: e.Start})
	}
	for _, c := range r.log.Ranges() {
		info := RangeInfo{Start: c.Start, End: c.End}
		if c.End == commitlog.OpenEnd {
			info.End = -1
		}
		in.Checksummed = append(in.Checksummed, info)
	}
	for _, lane := range []contract.Lane{contract.LaneQueue, contract.LaneIndex} {
		if cursor, found, err := r.log.LoadCursor(lane); err != nil {
			in.Cursors = append(in.Cursors, CursorInfo{Lane: lane.String(), Error: err.Error()})
			break // They stand in one file.
		} else if found {
			in.Cursors = append(in.Cursors, CursorInfo{Lane: cursor.Lane.String(), Epoch: cursor.Epoch, Next: cursor.Next})
		}
	}
	r.inspectIndex(&in)
	for _, topic := range r.queues.Topics() {
		for _, q := range r.queues.Queues(topic) {
			in.Queues = append(in.Queues, QueueInfo{Topic: topic, Queue: q, Min: r.queues.Min(topic, q), Max: r.queues.Max(topic, q)})
		}
	}
	return in
}
