package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/dispatch"
)

// recovery is what opening a store for writing found and did, as --json prints
// it on stderr.
type recovery struct {
	// Unclean tells that the last owner did not close the store, Foreign that
	// another program wrote to it since.
	Unclean bool `json:"unclean"`
	Foreign bool `json:"foreign"`
	// Sidecar describes damage to the files of DIR/stratalog.
	Sidecar string `json:"sidecar,omitempty"`
	// Start and Tail name the rows of the tables in docs/DURABILITY.md.
	Start       string           `json:"start"`
	Tail        string           `json:"tail"`
	ScannedFrom stratalog.Offset `json:"scanned_from"`
	End         stratalog.Offset `json:"end"`
	Records     int64            `json:"records"`
	Cut         *cutRange        `json:"cut,omitempty"`
	SetAside    []string         `json:"set_aside,omitempty"`
	// Restored are the segments that another program had deleted.
	Restored []string  `json:"restored,omitempty"`
	Epoch    uint64    `json:"epoch"`
	NewEpoch bool      `json:"new_epoch"`
	Queues   queuesCut `json:"queues"`
	// Index says why the key index, or the end of it, was made anew.
	Index string       `json:"index,omitempty"`
	Lanes []laneReplay `json:"lanes"`
}

// cutRange is the range of the log that was cut, and why.
type cutRange struct {
	Start stratalog.Offset `json:"start"`
	End   stratalog.Offset `json:"end"`
	Cause string           `json:"cause,omitempty"`
}

// queuesCut is what was done to make the consume queues fit the log.
type queuesCut struct {
	// Rebuilt says why they were made anew from the log.
	Rebuilt string `json:"rebuilt,omitempty"`

	Cut   int   `json:"cut"`
	Units int64 `json:"units"`
	Torn  int   `json:"torn"`
	Lost  int   `json:"lost"`
}

// laneReplay is what was put into a lane at the open.
type laneReplay struct {
	Lane    string           `json:"lane"`
	Reason  string           `json:"reason"`
	From    stratalog.Offset `json:"from"`
	To      stratalog.Offset `json:"to"`
	Records uint64           `json:"records"`
	Error   string           `json:"error,omitempty"`
	resumed bool
}

func newRecovery(r stratalog.LoadReport) *recovery {
	l := r.Log
	v := &recovery{Unclean: r.Unclean, Foreign: l.Foreign, Sidecar: l.SidecarReason, Start: l.Start, Tail: l.Tail,
		ScannedFrom: l.ScannedFrom, End: l.End, Records: l.Records, SetAside: l.SetAside, Restored: l.Restored,
		Epoch: uint64(l.Epoch), NewEpoch: l.NewEpoch, Lanes: []laneReplay{}, Index: r.Index.Rebuilt,
		Queues: queuesCut{Rebuilt: r.QueueTally, Cut: r.QueueCut.Queues, Units: r.QueueCut.Units, Torn: r.QueueCut.Torn, Lost: len(r.QueueCut.Lost)}}
	if !l.Cut.Empty() {
		v.Cut = &cutRange{Start: l.Cut.Start, End: l.Cut.End}
		if l.CutCause != nil {
			v.Cut.Cause = l.CutCause.Error()
		}
	}
	for _, opened := range r.Lanes {
		lane := laneReplay{Lane: opened.Lane.String(), Reason: opened.Reason.String(), From: opened.Start.Next,
			To: opened.Start.Next, resumed: opened.Reason == dispatch.StartResumed}
		for _, replayed := range r.Replayed {
			if replayed.Lane == opened.Lane {
				lane.From, lane.To, lane.Records = replayed.From, replayed.To, replayed.Records
				if replayed.Err != nil {
					lane.Error = replayed.Err.Error()
				}
			}
		}
		v.Lanes = append(v.Lanes, lane)
	}
	return v
}

// lines says what is worth knowing, one thing a line; nothing after a clean
// close, or for a new store.
func (v *recovery) lines() []string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if v.Unclean {
		say("the store was not closed: %d records from %d on were read, the log ends at %d", v.Records, v.ScannedFrom, v.End)
	}
	if v.Foreign {
		say("another program wrote to the log since it was closed (%s): %d records were read, the log ends at %d", v.Start, v.Records, v.End)
	}
	if v.Sidecar != "" {
		say("the files in stratalog/ cannot be relied on: %s; %d records from %d on were read", v.Sidecar, v.Records, v.ScannedFrom)
	}
	if !v.Foreign && v.Sidecar == "" && !slices.Contains([]string{"new log", "closed well", "not closed"}, v.Start) {
		say("%s: %d records from %d on were read, the log ends at %d", v.Start, v.Records, v.ScannedFrom, v.End)
	}
	if v.Cut != nil {
		say("the tail [%d,%d) was cut: %s", v.Cut.Start, v.Cut.End, v.Cut.Cause)
	}
	for _, file := range v.Restored {
		say("another program had deleted %s; it is there again", file)
	}
	for _, file := range v.SetAside {
		say("set aside in stratalog/cut: %s", file)
	}
	if v.NewEpoch && (v.Cut != nil || len(v.SetAside) > 0) {
		say("epoch %d begins at %d", v.Epoch, v.End)
	}
	if v.Index != "" {
		say("the key index is made anew from where it is certain: %s", v.Index)
	}
	if v.Queues.Rebuilt != "" {
		say("the consume queues were made anew from the log: %s", v.Queues.Rebuilt)
	}
	if q := v.Queues; q.Cut > 0 || q.Torn > 0 || q.Lost > 0 {
		say("%d entries were cut from %d queues, %d entries led to no record, %d queues had lost some", q.Units, q.Cut, q.Torn, q.Lost)
	}
	for _, lane := range v.Lanes {
		if lane.Records > 0 || !lane.resumed && v.End > v.ScannedFrom && v.Records > 0 {
			say("%s: %d records in [%d,%d) were put in (%s)", lane.Lane, lane.Records, lane.From, lane.To, lane.Reason)
		}
		if lane.Error != "" {
			say("%s stopped at %d: %s", lane.Lane, lane.To, lane.Error)
		}
	}
	return all
}

// opened tells on stderr what opening a store did, if it did anything worth
// knowing: lines for people, one JSON object with --json.
func (a *app) opened(r stratalog.LoadReport) {
	v := newRecovery(r)
	lines := v.lines()
	if len(lines) == 0 {
		return
	}
	if a.json {
		// A stream that cannot be written to is no reason not to go on.
		_ = json.NewEncoder(a.errOut).Encode(map[string]*recovery{"recovery": v})
		return
	}
	for _, line := range lines {
		_, _ = io.WriteString(a.errOut, "stratalog: recovery: "+oneLine(line)+"\n")
	}
}
