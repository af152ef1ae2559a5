package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/conformance/javapeer"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/clock"
)

// Sizes of both sides, small so that every run rolls.
const (
	segmentSize    = 64 << 10
	queueFileSize  = 50 * 20
	indexSlots     = 97
	indexEntries   = 401
	maxMessageSize = 48 << 10
)

// setup is how both sides are configured for one directory.
type setup struct {
	segment    int64
	queueFile  int64
	maxMessage int
	// checksum says whether records carry the checksum over all of them.
	checksum bool
	// more are options of Java's alone, types the queue types of topics.
	more  javapeer.Config
	types map[string]string
	// path is how we write.
	path stratalog.WritePath
}

func usual() setup {
	return setup{segment: segmentSize, queueFile: queueFileSize, maxMessage: maxMessageSize, checksum: true}
}

func (s setup) config() javapeer.Config {
	return javapeer.Config{
		"mappedFileSizeCommitLog":         s.segment,
		"mappedFileSizeConsumeQueue":      s.queueFile,
		"mapperFileSizeBatchConsumeQueue": 46 * 50,
		"mappedFileSizeConsumeQueueExt":   4096,
		"maxHashSlotNum":                  indexSlots,
		"maxIndexNum":                     indexEntries,
		"maxMessageSize":                  s.maxMessage,
		"enabledAppendPropCRC":            s.checksum,
		"flushDiskType":                   "ASYNC_FLUSH",
	}.With(s.more)
}

func (s setup) options(dir string) stratalog.Options {
	return stratalog.Options{Dir: dir, SegmentSize: s.segment, QueueFileSize: s.queueFile, MaxMessageSize: s.maxMessage,
		NoRecordChecksum: !s.checksum, IndexSlots: indexSlots, IndexEntries: indexEntries, WritePath: s.path, Durability: stratalog.Memory, SyncInterval: 20 * time.Millisecond, DiskFloor: -1}
}

// openJava opens, loads and starts.
func (e *env) openJava(p *javapeer.Process, dir string, s setup) (*javapeer.Store, error) {
	store, err := p.Open(e.ctx, dir, s.config(), s.types)
	if err != nil {
		return nil, err
	}
	loaded, err := store.Load(e.ctx)
	if err == nil && !loaded {
		err = errors.New("java: load says false")
	}
	if err == nil {
		err = store.Start(e.ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.Log())
	}
	return store, nil
}

// javaPuts puts groups of messages, each of more than one as a producer's batch.
func (e *env) javaPuts(store *javapeer.Store, groups [][]stratalog.Message) ([]sent, error) {
	var all []sent
	for _, g := range groups {
		if len(g) == 1 {
			puts, err := store.Put(e.ctx, javapeer.MessageOf(&g[0]))
			if err != nil {
				return nil, err
			}
			if puts[0].Status != "PUT_OK" {
				return nil, fmt.Errorf("java: put %d to %s: %s, %s", len(all), g[0].Topic, puts[0].Status, puts[0].Append)
			}
			all = append(all, sent{g[0], puts[0].Offset, puts[0].Phy, puts[0].Stored})
			continue
		}
		batch := make([]javapeer.Message, len(g))
		for i := range g {
			batch[i] = javapeer.MessageOf(&g[i])
		}
		put, err := store.PutBatch(e.ctx, batch...)
		if err != nil {
			return nil, err
		}
		if put.Status != "PUT_OK" || put.Count != len(g) {
			return nil, fmt.Errorf("java: put a batch: %+v", put)
		}
		phy := put.Phy
		for i := range g {
			all = append(all, sent{g[i], put.Offset + int64(i), phy, put.Stored})
			r, err := store.Read(e.ctx, phy)
			if err != nil || !r.Found {
				return nil, fmt.Errorf("java: record %d of a batch at %d: %v, %w", i, phy, r.Found, err)
			}
			phy += int64(len(r.Raw))
		}
	}
	return all, nil
}

// javaWrites makes or continues dir and returns what Java itself then finds.
func (e *env) javaWrites(dir string, s setup, groups [][]stratalog.Message) ([]sent, snapshot, error) {
	store, err := e.openJava(e.java, dir, s)
	if err != nil {
		return nil, nil, err
	}
	all, err := e.javaPuts(store, groups)
	if err == nil {
		err = store.Wait(e.ctx)
	}
	var seen snapshot
	if err == nil {
		seen, err = javaSees(e.ctx, store)
	}
	return all, seen, errors.Join(err, store.Shutdown(e.ctx))
}

// javaReads opens dir with Java and returns what it finds.
func (e *env) javaReads(dir string, s setup) (snapshot, error) {
	_, seen, err := e.javaWrites(dir, s, nil)
	return seen, err
}

// openOurs opens and starts.
func openOurs(ctx context.Context, opt stratalog.Options) (*stratalog.Store, error) {
	store, err := stratalog.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	return store, store.Start(ctx)
}

// closeOurs closes in order.
func closeOurs(ctx context.Context, store *stratalog.Store) error {
	report, err := store.Close(ctx)
	if err == nil && !report.Clean {
		err = fmt.Errorf("not closed well: %+v", report)
	}
	return err
}

// stampedClock is a real clock whose wall is set by hand.
type stampedClock struct {
	clock.Clock
	ms atomic.Int64
}

func (c *stampedClock) Now() time.Time { return time.UnixMilli(c.ms.Load()) }

// weAppend appends groups, each of more than one as a batch; if stamps is not
// nil, at the store times that it names.
func weAppend(ctx context.Context, store *stratalog.Store, groups [][]stratalog.Message, wall *stampedClock, stamps []sent) ([]sent, error) {
	var all []sent
	var end stratalog.Offset
	for _, g := range groups {
		if wall != nil {
			wall.ms.Store(stamps[len(all)].stored)
		}
		var receipts []stratalog.Receipt
		var err error
		if len(g) == 1 {
			receipts = make([]stratalog.Receipt, 1)
			receipts[0], err = store.Append(ctx, &g[0], stratalog.Memory)
		} else {
			receipts, err = store.AppendBatch(ctx, g, stratalog.Memory, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("append %d to %s: %w", len(all), g[0].Topic, err)
		}
		for i, r := range receipts {
			place, _ := r.Range()
			all = append(all, sent{g[i], r.QueueOffset(), int64(place.Start), r.StoreTime()})
			end = place.End
		}
	}
	return all, store.WaitVisible(ctx, end)
}

// weWrite makes or continues dir and returns what we then find.
func (e *env) weWrite(opt stratalog.Options, groups [][]stratalog.Message, wall *stampedClock, stamps []sent) ([]sent, snapshot, error) {
	store, err := openOurs(e.ctx, opt)
	if err != nil {
		return nil, nil, err
	}
	all, err := weAppend(e.ctx, store, groups, wall, stamps)
	var seen snapshot
	if err == nil {
		seen, err = oursSees(e.ctx, store)
	}
	return all, seen, errors.Join(err, closeOurs(e.ctx, store))
}

// weRead opens dir in every way that reads, and once for writing, and returns
// what is found, which must be the same each time.
func (e *env) weRead(opt stratalog.Options) (snapshot, error) {
	reader, err := stratalog.OpenReader(e.ctx, opt, stratalog.ReaderOptions{})
	if err != nil {
		return nil, fmt.Errorf("open a reader: %w", err)
	}
	beside, err := oursSees(e.ctx, reader)
	if err == nil {
		err = verified(e.ctx, reader)
	}
	if err = errors.Join(err, reader.Close()); err != nil {
		return nil, fmt.Errorf("reader: %w", err)
	}
	_, owned, err := e.weWrite(opt, nil, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return owned, differs("reader against store", beside, owned)
}

// verified is an error unless Verify finds nothing wrong.
func verified(ctx context.Context, r *stratalog.Reader) error {
	var faults []error
	_, err := r.Verify(ctx, func(f stratalog.Finding) {
		if f.Severity == stratalog.Fault {
			faults = append(faults, fmt.Errorf("verify: %s, %s at %d: %s", f.Kind, f.File, f.Offset, f.Text))
		}
	})
	if len(faults) > 5 {
		faults = append(faults[:5], fmt.Errorf("and %d more", len(faults)-5))
	}
	return errors.Join(append(faults, err)...)
}

// verifiedDir is verified of a directory.
func (e *env) verifiedDir(opt stratalog.Options) error {
	r, err := stratalog.OpenReader(e.ctx, opt, stratalog.ReaderOptions{})
	if err != nil {
		return err
	}
	return errors.Join(verified(e.ctx, r), r.Close())
}

// files returns the files below dir/sub and their bytes, by their path below it.
func files(dir, sub string) (map[string][]byte, error) {
	all := map[string][]byte{}
	base := filepath.Join(dir, sub)
	err := filepath.WalkDir(base, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(base, name)
		all[rel] = b
		return err
	})
	return all, err
}

// sameFiles compares what lies below sub in two directories, byte by byte.
func sameFiles(sub, a, b string) error {
	x, err := files(a, sub)
	if err != nil {
		return err
	}
	y, err := files(b, sub)
	if err != nil {
		return err
	}
	var errs []error
	for name, bytesX := range x {
		bytesY, ok := y[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s/%s is on one side only", sub, name))
		} else if string(bytesX) != string(bytesY) {
			errs = append(errs, fmt.Errorf("%s/%s: %s", sub, name, firstDifference(bytesX, bytesY)))
		}
	}
	for name := range y {
		if _, ok := x[name]; !ok {
			errs = append(errs, fmt.Errorf("%s/%s is on the other side only", sub, name))
		}
	}
	return errors.Join(errs...)
}

// isCorrupt tells that err is typed damage.
func isCorrupt(err error) bool {
	var c *contract.CorruptionError
	return errors.As(err, &c)
}
