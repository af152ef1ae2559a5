package cq

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// Reason says why a queue is suspect.
type Reason uint8

// The reasons.
const (
	// EmptyFile: the last file had length 0. Open removed it.
	EmptyFile Reason = iota + 1
	// ShortFile: a file is shorter than FileSize.
	ShortFile
	// NoFile: the queue's directory holds no file.
	NoFile
	// MissingFile: there are files behind one that is missing.
	MissingFile
	// Hole: there are units behind a stretch without units.
	Hole
	// Garbage: behind the end are bytes that nobody wrote. They may have
	// taken units of the same sector with them.
	Garbage
	// FullTail: the last file is full; the next one was not made yet, or is
	// gone. Nothing is assumed.
	FullTail
)

// String returns lower-case words.
func (r Reason) String() string {
	switch r {
	case EmptyFile:
		return "empty last file"
	case ShortFile:
		return "short file"
	case NoFile:
		return "no file"
	case MissingFile:
		return "missing file"
	case Hole:
		return "hole"
	case Garbage:
		return "garbage behind the end"
	case FullTail:
		return "full last file"
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Suspect is a queue that does not look as an orderly stop leaves it. That is
// what a power cut does, or damage.
type Suspect struct {
	Topic  string
	Queue  int32
	Reason Reason
	// File is the path in question.
	File string
	// Next is the queue offset up to which the units are whole, From the end
	// of the last record among them: a replay of the log from there makes the
	// queue whole whatever happened to it.
	Next int64
	From contract.Offset
}

// LoadReport says what Open found.
type LoadReport struct {
	Topics int
	Queues int
	Files  int
	// MaxPhysical is the largest end of a record over all queues.
	MaxPhysical contract.Offset
	// Suspects lists what an orderly stop does not leave. TruncateAbove
	// settles them.
	Suspects []Suspect
}

// LoadReport returns what Open found.
func (s *Store) LoadReport() LoadReport { return s.load }

// Open loads the queues below dir, which need not exist. Names and lengths that
// no power cut explains are a *contract.CorruptionError, and nothing is
// changed. The only things that Open ever changes: it removes a last file of length 0,
// as Java does, and a file that was half made anew (keep.go).
//
// An owner calls TruncateAbove before it applies anything.
func Open(fsys vfs.FS, dir string, opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		fs: fsys, dir: path.Clean(dir), opts: opts, unitsPerFile: opts.FileSize / unitSize,
		files: newHandles(fsys, opts), topics: make(map[string]map[int32]*queue),
		dirtyTopics: make(map[string]struct{}), scratch: make([]byte, scratchBytes), tallied: tallied{tally: -1},
	}
	if err = s.openExt(); err == nil {
		err = s.openBatches()
	}
	var found []foundQueue
	if err == nil {
		found, err = s.scanRoot()
	}
	if err == nil {
		err = s.adopt(found)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// foundQueue is a queue directory with its files, as listed.
type foundQueue struct {
	topic string
	id    int32
	files []foundFile
}

type foundFile struct {
	start  int64
	length int64
}

// scanRoot lists everything and judges names and lengths, changing nothing.
func (s *Store) scanRoot() ([]foundQueue, error) {
	topics, err := s.list(s.dir)
	if err != nil {
		return nil, err
	}
	var found []foundQueue
	for _, t := range topics {
		if !t.IsDir {
			if err := s.dropAnew(s.dir, t.Name); err != nil {
				return nil, err
			}
			continue
		}
		ids, err := s.list(path.Join(s.dir, t.Name))
		if err != nil {
			return nil, err
		}
		for _, d := range ids {
			id, ok := parseQueueID(d.Name)
			if !ok || !d.IsDir {
				continue
			}
			files, err := s.scanQueue(path.Join(s.dir, t.Name, d.Name))
			if err != nil {
				return nil, err
			}
			found = append(found, foundQueue{t.Name, id, files})
		}
	}
	return found, s.checkLengths(found)
}

func (s *Store) list(dir string) ([]vfs.DirEntry, error) {
	entries, err := s.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioError(contract.OpOpen, "list "+dir, err)
	}
	return entries, nil
}

func (s *Store) scanQueue(dir string) ([]foundFile, error) {
	entries, err := s.list(dir)
	if err != nil {
		return nil, err
	}
	var files []foundFile
	for _, e := range entries {
		if e.IsDir {
			continue
		}
		name := path.Join(dir, e.Name)
		info, err := s.fs.Stat(name)
		if errors.Is(err, fs.ErrNotExist) && s.opts.ReadOnly {
			continue // Retired by a live owner since it was listed.
		}
		if err != nil {
			return nil, ioError(contract.OpOpen, "describe "+name, err)
		}
		start, ok := parseFileName(e.Name)
		if !ok || start%s.opts.FileSize != 0 || start > math.MaxInt64-2*s.opts.FileSize {
			return nil, &contract.CorruptionError{File: name, Cause: ErrFileName}
		}
		if info.Size > s.opts.FileSize {
			return nil, s.lengthError(name, info.Size)
		}
		files = append(files, foundFile{start, info.Size})
	}
	slices.SortFunc(files, func(a, b foundFile) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	return files, nil
}

func (s *Store) lengthError(name string, length int64) error {
	return &contract.CorruptionError{File: name, Offset: length,
		Cause: fmt.Errorf("%w: %d instead of %d", ErrFileLength, length, s.opts.FileSize)}
}

// checkLengths tells short files that damage explains from a directory that was
// made with another file size: there, all files agree on a length.
func (s *Store) checkLengths(found []foundQueue) error {
	length, count, name := int64(-1), 0, ""
	for _, fq := range found {
		for _, f := range fq.files {
			if f.length == 0 {
				continue
			}
			if f.length == s.opts.FileSize || (length >= 0 && f.length != length) {
				return nil
			}
			length, count = f.length, count+1
			name = path.Join(s.dir, fq.topic, fmt.Sprint(fq.id), fileName(f.start))
		}
	}
	if count < 2 || length%unitSize != 0 {
		return nil
	}
	return s.lengthError(name, length)
}

// adopt makes the queues of what was found.
func (s *Store) adopt(found []foundQueue) error {
	for _, fq := range found {
		q := s.addQueue(fq.topic, fq.id)
		if err := s.adoptFiles(q, fq.files); err != nil {
			return err
		}
		end, err := s.findEnd(q, noLimit, noLimit)
		if err != nil {
			return err
		}
		q.anchor = end
		if err := s.settle(q, end); err != nil {
			return err
		}
		s.noteFullTail(q)
		for i := range q.suspects {
			q.suspects[i].Next = q.end.Load()
			q.suspects[i].From = contract.Offset(q.maxPhy.Load())
		}
		s.load.Suspects = append(s.load.Suspects, q.suspects...)
		s.load.Files += len(fq.files)
		s.load.Queues++
	}
	s.mu.RLock()
	s.load.Topics = len(s.topics)
	s.mu.RUnlock()
	s.load.MaxPhysical = s.MaxPhysical()
	return nil
}

// adoptFiles takes the leading files that are whole and contiguous; the rest
// become orphans.
func (s *Store) adoptFiles(q *queue, files []foundFile) error {
	if n := len(files); n > 0 && files[n-1].length == 0 {
		name := q.path(files[n-1].start)
		if !s.opts.ReadOnly {
			if err := s.fs.Remove(name); err != nil {
				return ioError(contract.OpOpen, "remove the empty file "+name, err)
			}
		}
		q.suspect(EmptyFile, name)
		files = files[:n-1]
	} else if n == 0 {
		q.suspect(NoFile, q.dir)
	}
	for i, f := range files {
		switch {
		case i > 0 && q.short:
			// The file before is short, so this one hangs in the air.
		case i > 0 && f.start != files[i-1].start+s.opts.FileSize:
			q.suspect(MissingFile, q.path(files[i-1].start+s.opts.FileSize))
		case f.length == 0:
			q.suspect(ShortFile, q.path(f.start))
		default:
			if i == 0 {
				q.first.Store(f.start)
			}
			q.count.Add(1)
			if f.length < s.opts.FileSize {
				q.short = true
				q.suspect(ShortFile, q.path(f.start))
			}
			continue
		}
		for _, orphan := range files[i:] {
			q.orphans = append(q.orphans, orphan.start)
		}
		break
	}
	return nil
}

func (q *queue) suspect(r Reason, file string) {
	for i := range q.suspects {
		if q.suspects[i].Reason == r {
			return
		}
	}
	q.suspects = append(q.suspects, Suspect{Topic: q.topic, Queue: q.id, Reason: r, File: file})
}

func (s *Store) noteFullTail(q *queue) {
	if n := q.count.Load(); n > 0 && len(q.orphans) == 0 && !q.short &&
		q.end.Load()*unitSize == q.first.Load()+n*s.opts.FileSize {
		q.suspect(FullTail, q.path(q.first.Load()+n*s.opts.FileSize))
	}
}

// settle publishes what a search found: end, largest record end, first live
// unit.
func (s *Store) settle(q *queue, end int64) error {
	_, u, ok, err := s.lastReal(q, end)
	if err != nil {
		return err
	}
	phy := int64(0)
	if ok {
		phy = endOf(u)
	}
	q.maxPhy.Store(phy)
	q.wend = end
	q.flushed, q.anchor = min(q.flushed, end), min(q.anchor, end)
	q.min.Store(q.first.Load() / unitSize)
	q.end.Store(end)
	s.raiseMaxPhy(phy)
	return s.correctQueue(q, s.logMin.Load())
}
