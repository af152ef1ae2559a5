package stratalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/dispatch"
	"github.com/stratalog/stratalog/index"
	"github.com/stratalog/stratalog/internal/task"
	"github.com/stratalog/stratalog/internal/vfs"
)

// The files of a store root that are not a stratum's.
const (
	lockName       = "lock"
	abortName      = "abort"
	checkpointName = "checkpoint"
	queueDirName   = "consumequeue"
	indexDirName   = "index"
)

// stage is where a store is in its life.
type stage uint8

const (
	stageNew stage = iota
	stageLoaded
	stageStarted
	stageClosed
)

// String returns a lower-case word.
func (s stage) String() string {
	return [...]string{"new", "loaded", "started", "closed"}[s]
}

// Store is a message store. Its methods are safe for concurrent use.
type Store struct {
	opt Options

	// life is held over Load, Start, Recover, TruncateTo and Close, and guards
	// what they make. Appends, reads and Health do not take it.
	life  gate
	stage atomic.Uint32
	lock  vfs.Lock
	// live is the log while appends are admitted, reading what Gets use while
	// reads are.
	live    atomic.Pointer[commitlog.Log]
	reading atomic.Pointer[getter]

	// cuts is odd while the log may be being cut. A Get during which it changed
	// may have seen the queues and the log at different times.
	cuts atomic.Int64

	log    *commitlog.Log
	queues *cq.Store
	// batchesAhead are topics of batches that the queues do not know yet.
	batchesAhead []string
	index        *index.Store // nil with NoIndex
	dispatcher   *dispatch.Dispatcher
	owner        *task.Group
	report       LoadReport
	// closedReport is what Close returned, for a second call.
	closedReport CloseReport
}

// LoadReport tells what Load found and did.
type LoadReport struct {
	// Log is the recovery of the log.
	Log commitlog.RecoveryReport
	// Unclean tells that the last owner did not close the store.
	Unclean bool
	// Stranger tells that a Java broker has started on the store since our last
	// open, or before the first.
	Stranger bool
	// Queues is what was found of the consume queues, QueueCut what was done
	// to make them fit the log.
	Queues   cq.LoadReport
	QueueCut cq.TruncateReport
	// QueueTally tells that the queues were found not to hold what their
	// cursor vouched for, and were rebuilt; empty if all was well.
	QueueTally string
	// Index is what was done to make the key index fit the log.
	Index index.FitReport
	// Lanes tells for each lane where it starts and why, Replayed what was
	// applied to it.
	Lanes    []dispatch.OpenReport
	Replayed []dispatch.CatchUpReport
}

// New checks opt and returns a store that has touched nothing yet.
func New(opt Options) (*Store, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	return &Store{opt: opt.withDefaults(), life: make(gate, 1)}, nil
}

// Open is New and Load.
func Open(ctx context.Context, opt Options) (*Store, error) {
	s, err := New(opt)
	if err != nil {
		return nil, err
	}
	if _, err := s.Load(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func invalid(format string, args ...any) error {
	return contract.NewError(contract.KindInvalid, contract.OpOpen, contract.ComponentConfig, fmt.Sprintf(format, args...), nil)
}

func (s *Store) now() stage { return stage(s.stage.Load()) }

// order refuses a call that comes at the wrong stage.
func (s *Store) order(op contract.Operation, want stage) error {
	now := s.now()
	if now == want {
		return nil
	}
	kind := contract.KindInvalid
	switch {
	case now == stageClosed:
		kind = contract.KindClosed
	case now < want:
		kind = contract.KindNotStarted
	}
	e := contract.NewError(kind, op, contract.ComponentStore, fmt.Sprintf("the store is %v, it must be %v", now, want), nil)
	e.Status = contract.StatusServiceUnavailable
	return e
}

func (s *Store) path(name string) string { return path.Join(s.opt.Dir, name) }

// Load takes the directory's lock, loads and recovers everything, and brings
// the lanes up to the log. Reads are possible after it. A failed Load leaves
// the files as it found them, unless writing itself failed, and may be tried
// again.
func (s *Store) Load(ctx context.Context) (LoadReport, error) {
	if err := s.life.enter(ctx, contract.OpOpen); err != nil {
		return LoadReport{}, err
	}
	defer s.life.leave()
	if err := s.order(contract.OpOpen, stageNew); err != nil {
		return LoadReport{}, err
	}
	undo := &undoStack{}
	if err := s.load(ctx, undo); err != nil {
		return s.report, errors.Join(err, undo.run())
	}
	s.reading.Store(&getter{log: s.log, queues: s.queues, index: s.index})
	s.stage.Store(uint32(stageLoaded))
	return s.report, nil
}

// undoStack gives back what a failed load took, last first.
type undoStack struct{ steps []func() error }

func (u *undoStack) add(f func() error) { u.steps = append(u.steps, f) }

func (u *undoStack) run() error {
	var err error
	for i := len(u.steps) - 1; i >= 0; i-- {
		err = errors.Join(err, u.steps[i]())
	}
	return err
}

func (s *Store) load(ctx context.Context, undo *undoStack) error {
	s.report, s.log = LoadReport{}, nil
	if err := s.prepareRoot(undo); err != nil {
		return err
	}
	// The queues come first: a stranger among their files is found before the
	// log is marked as being written.
	size, err := queueFileSize(s.opt)
	if err != nil {
		return err
	}
	if s.queues, err = cq.Open(s.opt.FS, s.path(queueDirName), cq.Options{
		FileSize: size, MaxHandles: s.opt.MaxQueueFiles, ExtWrite: s.opt.ExtendedQueues,
		ExtFileSize: s.opt.ExtendedFileSize, BatchFileSize: s.opt.BatchQueueFileSize, DelayLevels: s.opt.delays()}); err != nil {
		return err
	}
	s.queues.CheckBatches(s.checkBatch)
	undo.add(s.queues.Close)
	s.report.Queues = s.queues.LoadReport()
	if err := s.openIndex(undo); err != nil {
		return err
	}

	opt := s.opt.log()
	opt.Unclean, opt.Stranger, opt.Covered = s.report.Unclean, s.report.Stranger, s.queues.MaxPhysical()
	if s.log, err = commitlog.Open(ctx, opt); err != nil {
		return err
	}
	undo.add(func() error { return s.log.Close(false) })
	s.report.Log = s.log.Report()
	// Only now: until the log has noted what a broker wrote, a crash must not make
	// that look like ours.
	if err := s.clearLock(); err != nil {
		return ioError(contract.OpOpen, "lock", err)
	}
	if err := s.fitQueues(s.report.Log.Foreign); err != nil {
		return err
	}
	if err := s.fitIndex(s.report.Log.Foreign); err != nil {
		return err
	}
	s.dispatcher = dispatch.New(s.log, s.cursors(), s.opt.Clock, dispatch.Options{})
	opened, err := s.dispatcher.Add(s.queues, dispatch.LaneOptions{Required: true,
		OnRetired: dispatch.RetiredSkip})
	s.report.Lanes = []dispatch.OpenReport{opened}
	if err != nil {
		return err
	}
	if err := s.addIndexLane(); err != nil {
		return err
	}
	// On a full disk a lane stays behind until there is room; the report and
	// Health say so, and what it holds can be read.
	if s.report.Replayed, err = s.dispatcher.CatchUp(ctx); err != nil && !errors.Is(err, errNoSpace) {
		return err
	}
	if err := s.queues.CorrectMin(s.log.MinOffset()); err != nil {
		return err
	}
	return s.log.LoadQueueOffsets(offsetSource{s})
}

// prepareRoot makes the root, takes its lock, and notes, before any other byte
// is written, that the store is in use.
func (s *Store) prepareRoot(undo *undoStack) error {
	info, err := s.opt.FS.Stat(s.opt.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = s.makeRoot(path.Clean(s.opt.Dir))
	case err == nil && !info.IsDir:
		return invalid("%s is not a directory", s.opt.Dir)
	}
	if err != nil {
		return ioError(contract.OpOpen, "root", err)
	}
	s.lock, err = s.opt.FS.Lock(s.path(lockName))
	if errors.Is(err, vfs.ErrLocked) {
		return contract.NewError(contract.KindLocked, contract.OpOpen, contract.ComponentStore, s.path(lockName), err)
	}
	if err != nil {
		return ioError(contract.OpOpen, "lock", err)
	}
	undo.add(s.lock.Close)
	size, err := s.lock.Size()
	if err != nil {
		return ioError(contract.OpOpen, "lock", err)
	}
	s.report.Stranger = size > 0
	_, err = s.opt.FS.Stat(s.path(abortName))
	if err == nil {
		s.report.Unclean = true
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return ioError(contract.OpOpen, abortName, err)
	}
	if err := s.createAbort(); err != nil {
		return ioError(contract.OpOpen, abortName, err)
	}
	undo.add(func() error {
		if s.log != nil {
			return nil // the log says by now that it is not closed, and so must the root
		}
		return s.removeAbort()
	})
	return nil
}

// clearLock makes the lock file say that nobody but us has written since.
//
// A Java broker puts a word into the file as soon as it holds the lock, and syncs
// that, before it changes a record or takes an append; it never takes the word
// out. We write nothing there. So whether a broker ran since our last open is
// known, also after deaths and power cuts in any order, which abort cannot tell:
// brokers and we make and remove it alike, and they do not sync it.
func (s *Store) clearLock() error {
	if !s.report.Stranger {
		return nil
	}
	return s.lock.Clear()
}

// makeRoot makes dir and what is missing above it, from the top, each durable
// before the next: so a directory that exists has durable ones above it, but
// for the parent of the lowest, which is synced once more.
func (s *Store) makeRoot(dir string) error {
	if _, err := s.opt.FS.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = s.opt.FS.SyncDir(path.Dir(dir))
		}
		if errors.Is(err, fs.ErrPermission) {
			err = nil // who may not read the directory above made nothing in it either
		}
		return err
	}
	if parent := path.Dir(dir); parent != dir {
		if err := s.makeRoot(parent); err != nil {
			return err
		}
	}
	if err := s.opt.FS.MkdirAll(dir); err != nil {
		return err
	}
	return s.opt.FS.SyncDir(path.Dir(dir))
}

// createAbort writes the file whose presence says "not closed well", with the
// process id, as Java does.
func (s *Store) createAbort() error {
	f, err := s.opt.FS.Open(s.path(abortName), vfs.ReadWrite|vfs.Create)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	if errors.Is(err, errNoSpace) {
		err = nil // the name alone says it; on a full disk that must do
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.opt.FS.SyncDir(s.opt.Dir)
}

func (s *Store) removeAbort() error {
	if err := s.opt.FS.Remove(s.path(abortName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.opt.FS.SyncDir(s.opt.Dir)
}

func ioError(op contract.Operation, detail string, err error) error {
	e := contract.NewError(contract.KindIO, op, contract.ComponentStore, detail, err)
	if errors.Is(err, errNoSpace) {
		e.Kind, e.Sentinel = contract.KindCapacity, contract.ErrDiskFull
	}
	return e
}

// checkUnit asks the log whether the record that a unit names is there.
func (s *Store) checkUnit(topic string, queue int32, offset int64, u codec.QueueUnit) (bool, error) {
	var rec Record
	defer rec.Release()
	found, err := s.log.ReadSized(contract.Offset(u.PhysicalOffset), u.Size, &rec)
	if errors.Is(err, contract.ErrCorrupt) {
		return false, nil
	}
	if err != nil || !found {
		return false, err
	}
	return s.queues.Leads(u, &rec.MessageView, topic, queue, offset)
}

// checkBatch is checkUnit for a unit of a batch queue.
func (s *Store) checkBatch(topic string, queue int32, u codec.BatchUnit) (bool, error) {
	var rec Record
	defer rec.Release()
	found, err := s.log.ReadSized(contract.Offset(u.PhysicalOffset), u.Size, &rec)
	if errors.Is(err, contract.ErrCorrupt) {
		return false, nil
	}
	return found && s.queues.BatchLeads(u, &rec.MessageView, topic, queue), err
}

// offsetSource implements commitlog.OffsetSource: the queues know the offsets up
// to their lane's position, the log knows the rest.
type offsetSource struct{ s *Store }

func (o offsetSource) QueueOffsets(log *commitlog.Log, end contract.Offset, set func(topic string, queueID int32, next int64)) error {
	s := o.s
	if s.now() == stageStarted {
		// The log was cut while it ran: the queues must not count what is gone.
		lane, err := s.dispatcher.Status(contract.LaneQueue)
		if err != nil {
			return err
		}
		back := func() error { return s.queues.RollBack(end) }
		if err := s.dispatcher.Rebuild(contract.LaneQueue, min(lane.Applied.Next, end), back); err != nil {
			return err
		}
	}
	for _, topic := range s.queues.Topics() {
		for _, queue := range s.queues.Queues(topic) {
			set(topic, queue, s.queues.Max(topic, queue))
		}
	}
	s.batchesAhead = nil
	return log.Walk(max(s.dispatcher.Frontier(), log.MinOffset()), end, func(v *codec.MessageView) {
		if t := v.SysFlag() & codec.SysFlagTransaction; t == codec.SysFlagTransactionNone || t == codec.SysFlagTransactionCommit {
			set(string(v.Topic()), v.QueueID(), v.QueueOffset()+batchSize(v))
			if _, _, ok := cq.BatchOf(v); ok && !s.queues.IsBatch(string(v.Topic())) && len(s.queues.Queues(string(v.Topic()))) == 0 {
				s.batchesAhead = append(s.batchesAhead, string(v.Topic()))
			}
			light := v.LightQueues()
			for name, at, ok := light.Next(); ok; name, at, ok = light.Next() {
				set(string(name), codec.LightQueueID, at+1)
			}
		}
	})
}

// BatchTopics implements commitlog.BatchSource.
func (o offsetSource) BatchTopics() []string {
	return append(o.s.queues.BatchTopics(), o.s.batchesAhead...)
}

// batchSize is how many numbers a record takes.
func batchSize(v *codec.MessageView) int64 {
	if _, n, ok := cq.BatchOf(v); ok {
		return int64(n)
	}
	return 1
}

// Start begins background work and admits appends.
func (s *Store) Start(ctx context.Context) error {
	if err := s.life.enter(ctx, contract.OpStart); err != nil {
		return err
	}
	defer s.life.leave()
	if err := s.order(contract.OpStart, stageLoaded); err != nil {
		return err
	}
	s.owner = task.New("stratalog")
	// Nothing goes on as if a part that panicked were still there.
	s.owner.OnPanic(func(p task.Panic) { s.log.Fail(p) })
	if err := s.log.Start(s.owner); err != nil {
		return err
	}
	if err := s.dispatcher.Start(s.owner); err != nil {
		return err
	}
	s.live.Store(s.log)
	s.stage.Store(uint32(stageStarted))
	return nil
}
