package stratalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/commitlog"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/dispatch"
	"github.com/stratalog/stratalog/internal/task"
	"github.com/stratalog/stratalog/internal/vfs"
)

// The files of a store root that are not a stratum's.
const (
	lockName       = "lock"
	abortName      = "abort"
	checkpointName = "checkpoint"
	queueDirName   = "consumequeue"
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
	life  sync.Mutex
	stage atomic.Uint32
	lock  io.Closer
	// live is the log while appends are admitted, reading what Gets use while
	// reads are.
	live    atomic.Pointer[commitlog.Log]
	reading atomic.Pointer[getter]

	log        *commitlog.Log
	queues     *cq.Store
	dispatcher *dispatch.Dispatcher
	owner      *task.Group
	report     LoadReport
	// closedReport is what Close returned, for a second call.
	closedReport CloseReport
}

// LoadReport tells what Load found and did.
type LoadReport struct {
	// Log is the recovery of the log.
	Log commitlog.RecoveryReport
	// Unclean tells that the last owner did not close the store.
	Unclean bool
	// Queues is what was found of the consume queues, QueueCut what was done
	// to make them fit the log.
	Queues   cq.LoadReport
	QueueCut cq.TruncateReport
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
	return &Store{opt: opt.withDefaults()}, nil
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
	s.life.Lock()
	defer s.life.Unlock()
	if err := s.order(contract.OpOpen, stageNew); err != nil {
		return LoadReport{}, err
	}
	undo := &undoStack{}
	if err := s.load(ctx, undo); err != nil {
		return s.report, errors.Join(err, undo.run())
	}
	s.reading.Store(&getter{log: s.log, queues: s.queues})
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
	s.report = LoadReport{}
	if err := s.prepareRoot(undo); err != nil {
		return err
	}
	var err error
	opt := s.opt.log()
	opt.Unclean = s.report.Unclean
	if s.log, err = commitlog.Open(ctx, opt); err != nil {
		return err
	}
	undo.add(func() error { return s.log.Close(false) })
	s.report.Log = s.log.Report()

	size, err := queueFileSize(s.opt)
	if err != nil {
		return err
	}
	if s.queues, err = cq.Open(s.opt.FS, s.path(queueDirName), cq.Options{
		FileSize: size, MaxHandles: s.opt.MaxQueueFiles}); err != nil {
		return err
	}
	undo.add(s.queues.Close)
	s.report.Queues = s.queues.LoadReport()
	if err := s.fitQueues(s.report.Log.Foreign); err != nil {
		return err
	}
	s.dispatcher = dispatch.New(s.log, s.log, s.opt.Clock, dispatch.Options{})
	opened, err := s.dispatcher.Add(s.queues, dispatch.LaneOptions{Required: true,
		OnRetired: dispatch.RetiredSkip, Replay: s.report.QueueCut.Replay < s.log.Durable(), ReplayFrom: s.report.QueueCut.Replay})
	s.report.Lanes = []dispatch.OpenReport{opened}
	if err != nil {
		return err
	}
	if s.report.Replayed, err = s.dispatcher.CatchUp(ctx); err != nil {
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
		if err = s.opt.FS.MkdirAll(s.opt.Dir); err == nil {
			err = s.opt.FS.SyncDir(path.Dir(s.opt.Dir))
		}
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
	undo.add(s.removeAbort)
	return nil
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

// fitQueues makes the consume queues fit the recovered log: units of records
// that the log does not hold are cut.
func (s *Store) fitQueues(foreign bool) error {
	end := s.log.Durable()
	limit, check := end, cq.Check(nil)
	cursor, found, err := s.log.LoadCursor(contract.LaneQueue)
	trusted := err == nil && found
	if trusted {
		var back *contract.RollBackError
		if cursor, err = contract.ResolveCursor(cursor, s.log.Epochs()); errors.As(err, &back) {
			cursor.Next, err = back.To, nil
		}
		trusted = err == nil
	}
	if s.report.Unclean || foreign || !trusted {
		check = s.checkUnit
		limit = s.log.MinOffset()
		if trusted {
			limit = min(end, cursor.Next)
		}
	}
	s.report.QueueCut, err = s.queues.TruncateAbove(limit, check, func(to contract.Offset) error {
		epochs := s.log.Epochs()
		return s.log.SaveCursor(contract.Cursor{Lane: contract.LaneQueue, Epoch: epochs[len(epochs)-1].Epoch, Next: to})
	})
	return err
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
	return string(rec.Topic()) == topic && rec.QueueID() == queue && rec.QueueOffset() == offset, nil
}

// offsetSource implements commitlog.OffsetSource: the queues know the offsets up
// to their lane's position, the log knows the rest.
type offsetSource struct{ s *Store }

func (o offsetSource) QueueOffsets(log *commitlog.Log, end contract.Offset, set func(topic string, queueID int32, next int64)) error {
	s := o.s
	if s.now() == stageStarted {
		// The log was cut while it ran: the queues must not count what is gone.
		back := func() error { return s.queues.RollBack(end) }
		if err := s.dispatcher.Rebuild(contract.LaneQueue, min(s.dispatcher.Frontier(), end), back); err != nil {
			return err
		}
	}
	for _, topic := range s.queues.Topics() {
		for _, queue := range s.queues.Queues(topic) {
			set(topic, queue, s.queues.Max(topic, queue))
		}
	}
	return log.Walk(max(s.dispatcher.Frontier(), log.MinOffset()), end, func(v *codec.MessageView) {
		if t := v.SysFlag() & codec.SysFlagTransactionMask; t == codec.TransactionNone || t == codec.TransactionCommit {
			set(string(v.Topic()), v.QueueID(), v.QueueOffset()+1)
		}
	})
}

// Start begins background work and admits appends.
func (s *Store) Start(context.Context) error {
	s.life.Lock()
	defer s.life.Unlock()
	if err := s.order(contract.OpStart, stageLoaded); err != nil {
		return err
	}
	s.owner = task.New("stratalog")
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

// CloseReport tells what Close finished and what it did not.
type CloseReport struct {
	// Clean tells that everything is complete and on disk; the next Load has
	// nothing to recover.
	Clean bool
	// Watermarks are the log's at the end.
	Watermarks contract.Watermarks
	// Lanes that are behind, by name, with how many bytes.
	Behind map[string]int64
	// Running names background work that did not end by the deadline.
	Running []string
	// Errors are the failures of single steps, in order; every step was tried.
	Errors []error
}

// Close drains what was admitted, brings the lanes up to the log, makes
// everything durable, and marks the store as closed well, all within ctx's
// deadline. Every step is tried even if one before failed. A second call
// returns the first one's report.
func (s *Store) Close(ctx context.Context) (CloseReport, error) {
	s.life.Lock()
	defer s.life.Unlock()
	was := s.now()
	if was == stageClosed {
		return s.closedReport, nil
	}
	r := CloseReport{Behind: map[string]int64{}}
	s.stage.Store(uint32(stageClosed))
	s.live.Store(nil)
	s.reading.Store(nil)
	if was == stageNew {
		r.Clean = true
		s.closedReport = r
		return r, nil
	}
	step := func(err error) {
		if err != nil {
			r.Errors = append(r.Errors, err)
		}
	}
	if was == stageStarted {
		step(s.log.Drain(ctx))
	}
	closed, err := s.dispatcher.Close(ctx)
	step(err)
	for _, lane := range closed.Behind() {
		r.Behind[lane.Lane.String()] = lane.BehindBytes
	}
	if s.owner != nil {
		rep := s.owner.Close(ctx)
		r.Running = rep.Running
		step(rep.Err())
	}
	r.Watermarks = s.log.Watermarks()
	if len(r.Running) == 0 {
		step(s.queues.Close())
		clean := len(r.Errors) == 0 && len(r.Behind) == 0
		if clean {
			step(s.writeCheckpoint())
		}
		step(s.log.Close(clean && len(r.Errors) == 0))
		if clean && len(r.Errors) == 0 {
			step(s.removeAbort())
			r.Clean = len(r.Errors) == 0
		}
	}
	step(s.lock.Close())
	s.closedReport = r
	return r, errors.Join(r.Errors...)
}

// writeCheckpoint writes Java's checkpoint file: up to which store time each
// part is on disk. It is written when all of it is, and never read by us.
func (s *Store) writeCheckpoint() error {
	last := s.log.LastStoreTime()
	c := codec.Checkpoint{PhysicTimestamp: last, LogicsTimestamp: last, LogicsPhy: int64(s.log.Durable())}
	page := make([]byte, codec.CheckpointFileSize)
	if _, err := c.Encode(page); err != nil {
		return err
	}
	f, err := s.opt.FS.Open(s.path(checkpointName), vfs.ReadWrite|vfs.Create)
	if err != nil {
		return ioError(contract.OpClose, checkpointName, err)
	}
	_, err = f.WriteAt(page, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return ioError(contract.OpClose, checkpointName, err)
	}
	return s.opt.FS.SyncDir(s.opt.Dir)
}
