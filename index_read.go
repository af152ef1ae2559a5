package stratalog

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/index"
)

// indexView is the key index of a Reader.
type indexView struct {
	store *index.Store // nil if there is none to be read
	// why says why there is none.
	why error
	// boundary is up to where in the log the index holds all keys. Of an index
	// without a cursor, one of Java's, that is not known: it is the log's
	// start, and known is false.
	boundary contract.Offset
	known    bool
	// broken tells that its files do not hold what the cursor counted, though the
	// store was closed well.
	broken bool
}

func (v indexView) close() error {
	if v.store == nil {
		return nil
	}
	return v.store.Close()
}

// unfinished reports whether err is damage in the last file, of an index of which no
// cursor tells how far it has come: its owner writes slots and header behind the
// entries, and behind a cut they lead astray until it has.
func (v indexView) unfinished(err error) bool {
	var damage *contract.CorruptionError
	if v.known || v.store == nil || !errors.As(err, &damage) {
		return false
	}
	files := v.store.Files()
	return len(files) > 0 && files[len(files)-1].Path == damage.File
}

// openIndex opens the key index and finds out up to where its lane's cursor
// vouches for it. That there is none, or that it cannot be read, is no error: a
// query says so.
func (r *Reader) openIndex() indexView {
	opt := r.opt.index()
	opt.ReadOnly = true
	store, err := index.Open(r.opt.FS, path.Join(r.opt.Dir, indexDirName), opt)
	if err != nil {
		return indexView{why: err}
	}
	v := indexView{store: store, boundary: r.log.MinOffset()}
	cursor, found, err := r.log.LoadCursor(contract.LaneIndex)
	fit := index.Fit{Limit: r.log.MinOffset(), Tally: -1, LogMin: r.log.MinOffset()}
	if err == nil && found {
		if cursor, err = contract.ResolveCursor(cursor, r.log.Epochs()); err == nil {
			fit.Limit, fit.Tally, fit.Exact = cursor.Next, r.log.CursorTally(contract.LaneIndex), true
		}
	}
	if _, err := store.Fit(fit, nil); err != nil {
		return indexView{why: errors.Join(err, store.Close())}
	}
	if store.Exact() {
		v.boundary, v.known = max(cursor.Next, v.boundary), true
	} else if len(store.Files()) == 0 && !(found && r.unclean()) {
		// A store that is open has none before its first flush, and behind a cut.
		return indexView{why: errors.Join(errNoIndex, store.Close())}
	} else {
		v.broken = fit.Exact && !r.unclean() && !r.stranger()
	}
	return v
}

// QueryKey fills out with the messages that have a key; see Store.QueryKey. An
// index of Java's does not say how far it has come: the boundary is then the
// log's start. So it is for a moment of that of a live owner who cut the log; what is
// unfinished in its last file is passed over then.
func (r *Reader) QueryKey(ctx context.Context, q Query, out *Matches) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if err := r.open(contract.OpQuery); err != nil {
		if out != nil {
			out.clear(q.After)
		}
		return err
	}
	err := r.judged(contract.OpQuery, r.getter().query(ctx, q, out, r.index.boundary))
	if r.index.unfinished(err) && r.unclean() {
		err = nil // out says how far it counts: nothing is promised
	}
	if errors.Is(err, contract.ErrStale) {
		out.clear(q.After)
	}
	return err
}

// IndexFileInfo describes a key index file. Times are epoch milliseconds.
type IndexFileInfo struct {
	Path      string `json:"path"`
	Entries   int64  `json:"entries"`
	UsedSlots int64  `json:"used_slots"`
	BeginTime int64  `json:"begin_time"`
	EndTime   int64  `json:"end_time"`
	Begin     Offset `json:"begin"`
	End       Offset `json:"end"`
}

// inspectIndex describes the key index.
func (r *Reader) inspectIndex(in *Inspection) {
	if r.index.why != nil && !errors.Is(r.index.why, errNoIndex) {
		in.IndexError = r.index.why.Error()
	}
	if r.index.store == nil {
		return
	}
	in.IndexSlots, in.IndexEntries = r.index.store.Slots(), r.index.store.Entries()
	for _, f := range r.index.store.Files() {
		in.IndexFiles = append(in.IndexFiles, IndexFileInfo{Path: f.Path, Entries: f.Entries, UsedSlots: f.UsedSlots,
			BeginTime: f.BeginTime, EndTime: f.EndTime, Begin: f.Begin, End: f.End})
	}
}

// indexCheck is the part of a verification that is about the key index.
type indexCheck struct {
	v       *index.Verifier // nil if there is nothing to check
	missing int64
	first   index.Fault // The first of the missing.
}

// beginIndex makes ready for the records of the log.
func (v *verifier) beginIndex() {
	view := v.r.index
	switch {
	case view.why != nil && !errors.Is(view.why, errNoIndex):
		f := finding(Fault, "damage", view.why)
		f.Text += "; the key index is not checked"
		v.add(f)
	case view.store != nil:
		boundary := v.report.End
		if view.known {
			boundary = min(boundary, view.boundary)
		}
		v.index.v = view.store.NewVerifier(v.r.log.MinOffset(), boundary, v.indexFault)
	}
}

func (v *verifier) indexFault(f index.Fault) {
	switch {
	case f.Record >= 0 && v.isDamaged(f.Record):
	case f.Missing && v.retired(f.Record):
	case f.Missing && !v.r.index.known:
		if v.index.missing++; v.index.missing == 1 {
			v.index.first = f
		}
	case f.Missing:
		v.add(Finding{Severity: Fault, Kind: "missing-entry", File: f.File, Offset: f.Offset, Text: f.Text})
	default:
		v.add(Finding{Severity: Fault, Kind: "wrong-entry", File: f.File, Offset: f.Offset, Text: f.Text})
	}
}

// recordIndex checks the entries of a record; false ends the check.
func (v *verifier) recordIndex(m *codec.MessageView) bool {
	if v.index.v == nil {
		return true
	}
	v.err = v.index.v.Record(m)
	return v.err == nil
}

// endIndex checks what is left.
func (v *verifier) endIndex() error {
	if v.index.v == nil {
		return nil
	}
	err := v.index.v.Finish()
	v.report.Entries = v.index.v.Entries()
	if n, f := v.index.missing, v.index.first; n > 0 && v.r.index.broken {
		if f.File == "" {
			f.File = path.Join(v.r.opt.Dir, indexDirName) // No file is left that should have it.
		}
		v.add(Finding{Severity: Fault, Kind: "missing-entry", File: f.File, Offset: f.Offset, Count: n,
			Text: f.Text + "; the key index does not hold what it had when its cursor was saved"})
	} else if n > 0 {
		v.note("index-incomplete", fmt.Sprintf("%d keys are not in the index, of which nothing says how far it has come", n))
	}
	if n := v.index.v.Lagging(); n > 0 {
		v.note("lagging-lane", fmt.Sprintf("%d records with keys behind the index lane's position %d are not in the key index yet", n, v.r.index.boundary))
	}
	return err
}
