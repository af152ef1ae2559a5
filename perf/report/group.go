package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/stratalog/stratalog/perf/load"
)

// run is one run of the report.
type run struct {
	load.Run
	number int // from 1, in the order of the input
	file   string
	raw    json.RawMessage
	// whole is the run that this one is a part of; nil if it is all of it.
	whole *run
}

// outcome is what a run is worth.
type outcome int

const (
	sound  outcome = iota // everything acknowledged was read back and found right
	behind                // as sound or unread, but not under the load that was asked for
	unread                // nothing was to be read back
	bad                   // interrupted, or not found right
)

// outcome trusts the counts more than the word of whoever wrote the run.
func (r *run) outcome() outcome {
	if r.whole != nil {
		return r.whole.outcome()
	}
	v := &r.Verified
	switch {
	case r.Interrupted, v.Missing != 0, v.Wrong != 0, v.First != "", !v.OK && v.How != "":
		return bad
	case r.late() != nil:
		return behind
	case !v.OK, v.Records <= 0 && len(r.Ops) > 0:
		return unread
	}
	return sound
}

// late returns the first operation that did not get the load that was asked for,
// nil if there is none: messages were left unsent, or an open loop did not reach
// its rate.
func (r *run) late() *load.Op {
	for i := range r.Ops {
		op := &r.Ops[i]
		// Only the producers are offered a rate; others, such as those of
		// messages at a roll, carry it along.
		if op.Unsent > 0 || (i == 0 || op.Service != nil) && !reached(op) {
			return op
		}
	}
	return nil
}

// enough is the part of its rate that an open loop must reach.
const enough = 0.99

// reached tells whether an operation had the rate that was asked for. The wait
// for the last answer is no part of the time in which messages were due, and
// random arrivals are as many as asked for give or take three deviations.
func reached(op *load.Op) bool {
	if op.Rate <= 0 {
		return true
	}
	got, least := op.RecordsPerSec, enough*op.Rate
	if op.Seconds > 0 {
		if s := op.Service; s != nil && s.P50 > 0 && s.P50/1e6 < op.Seconds/2 {
			got *= op.Seconds / (op.Seconds - s.P50/1e6)
		}
		if op.Arrivals == load.Random.String() {
			least -= 3 * math.Sqrt(op.Rate/op.Seconds)
		}
	}
	return got >= least
}

// state says in a word or two what the run is worth.
func (r *run) state() string {
	switch r.outcome() {
	case sound:
		return "verified"
	case behind:
		return "BEHIND ITS RATE"
	case unread:
		return "not read back"
	}
	switch wrong := r.Verified.Missing != 0 || r.Verified.Wrong != 0; {
	case r.Interrupted && wrong:
		return "INTERRUPTED, AND WRONG"
	case r.Interrupted:
		return "INTERRUPTED"
	}
	return "NOT VERIFIED"
}

// op returns the operation of that name, nil if there is none.
func (r *run) op(name string) *load.Op {
	for i := range r.Ops {
		if r.Ops[i].Name == name {
			return &r.Ops[i]
		}
	}
	return nil
}

// group is the runs that repeat each other: one line of a table, one line of a
// chart.
type group struct {
	runs []*run

	// attributes are what can tell it from others, in the order of reading.
	attributes []attribute
	// subject and cell are where it stands in its section; label is what it is
	// called there, mark its number there.
	subject, cell int
	label         string
	mark          int
}

// attribute is one thing that tells groups apart. Names are unique within their
// source.
type attribute struct {
	source, name, value string
	role                role
}

// The sources of attributes.
const (
	fromEngine  = "engine"
	fromConfig  = "config"
	fromEnv     = "env"
	fromPromise = "promise"
	fromOutcome = "outcome"
)

func (a attribute) same(b attribute) bool { return a.source == b.source && a.name == b.name }

// role is what an attribute says about a group.
type role int

const (
	ofSubject role = iota // what was measured
	ofLoad                // what it was offered
	ofExtent              // how much of it was done; told only if nothing else differs
)

func (g *group) first() *run { return g.runs[0] }

func (g *group) outcome() outcome { return g.first().outcome() }

// value returns the group's value of an attribute; false if it has none.
func (g *group) value(a attribute) (string, bool) {
	for _, own := range g.attributes {
		if own.same(a) {
			return own.value, true
		}
	}
	return "", false
}

// loadWords are the words in names of parameters that describe the load;
// extentWords those that say how much of it there was.
var (
	loadWords = []string{"producers", "producer", "consumers", "readers", "clients", "threads", "async", "arrivals", "rate",
		"size", "sizes", "body", "bodies", "topics", "topic", "queues", "queue", "batch", "keys", "skew", "pattern", "mix", "backlog", "followers", "keep", "scan", "order",
		"mode", "state", operation}
	extentWords = []string{"records", "messages", "count", "duration", "warmup", "warm-up", "warm", "interval", "seconds", "rounds"}
	// repeatWords name what differs between repeats of one run.
	repeatWords = []string{"seed", "round", "repeat"}
)

// operation is the parameter that stands for the operation of a run that has
// many.
const operation = "operation"

// roleOf tells the role of a parameter by its name; false if repeats may differ
// in it.
func roleOf(name string) (role, bool) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '_' || r == '.' })
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	segment := slices.Contains(words, "segment") || slices.Contains(words, "segment-size")
	switch {
	case has(repeatWords):
		return 0, false
	case segment:
		return ofSubject, true
	case has(extentWords):
		return ofExtent, true
	case has(loadWords):
		return ofLoad, true
	}
	return ofSubject, true
}

// attributesOf lists everything that tells runs apart.
func attributesOf(r *run) []attribute {
	list := []attribute{{fromEngine, "engine", r.Engine, ofSubject}}
	for _, p := range r.Config {
		if role, ok := roleOf(p.Name); ok {
			list = append(list, attribute{fromConfig, p.Name, p.Value, role})
		}
	}
	for _, f := range envFields(r.Env) {
		list = append(list, attribute{fromEnv, f.name, f.value, ofSubject})
	}
	list = append(list, attribute{fromPromise, "promise", r.Promise, ofSubject})
	if r.outcome() != sound {
		list = append(list, attribute{fromOutcome, "outcome", r.state(), ofSubject})
	}
	return list
}

// field is a name and a value.
type field struct{ name, value string }

// envFields lists an environment for reading.
func envFields(e load.Env) []field {
	memory, cores, procs := "", "", ""
	if e.Memory > 0 {
		memory = bytesOf(float64(e.Memory))
	}
	if e.Cores > 0 {
		cores = fmt.Sprint(e.Cores)
	}
	if e.GOMAXPROCS > 0 {
		procs = fmt.Sprint(e.GOMAXPROCS)
	}
	return []field{{"CPU", e.CPU}, {"cores", cores}, {"GOMAXPROCS", procs}, {"memory", memory}, {"kernel", e.Kernel},
		{"file system", e.FileSystem}, {"Go", e.Go}, {"architecture", e.Arch}, {"commit", e.Commit}, {"version", e.Version}}
}

// groupRuns puts repeats together, in the order in which they first appear. A
// run that is bad has no repeats.
func groupRuns(runs []*run) []*group {
	var groups []*group
	byKey := map[string]*group{}
	for _, r := range runs {
		attributes := attributesOf(r)
		key := fmt.Sprintf("%q", r.Workload)
		for _, a := range attributes {
			key += fmt.Sprintf(" %s/%q=%q", a.source, a.name, a.value)
		}
		for i := range r.Ops {
			key += fmt.Sprintf(" %q", r.Ops[i].Name)
		}
		if g := byKey[key]; g != nil && r.outcome() != bad {
			g.runs = append(g.runs, r)
			continue
		}
		g := &group{runs: []*run{r}, attributes: attributes}
		byKey[key] = g
		groups = append(groups, g)
	}
	return groups
}

// stat returns the statistics of a figure over the repeats; false if none of
// them has it.
func (g *group) stat(of figure) (stat, bool) {
	var xs []float64
	for _, r := range g.runs {
		if x, ok := of(r); ok {
			xs = append(xs, finite(x))
		}
	}
	return statOf(xs), len(xs) > 0
}

// middle returns the repeat whose rate of an operation is the median one.
func (g *group) middle(op string) *run {
	byRate := slices.Clone(g.runs)
	rate := func(r *run) float64 {
		if o := r.op(op); o != nil {
			return o.RecordsPerSec
		}
		return 0
	}
	sort.SliceStable(byRate, func(i, j int) bool { return rate(byRate[i]) < rate(byRate[j]) })
	return byRate[(len(byRate)-1)/2]
}

// numbers lists the numbers of the group's runs: 1, 3–5.
func (g *group) numbers() string { return numberList(g.runs) }

func numberList(runs []*run) string {
	var b strings.Builder
	for i := 0; i < len(runs); {
		j := i
		for j+1 < len(runs) && runs[j+1].number == runs[j].number+1 {
			j++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		switch {
		case j == i:
			fmt.Fprint(&b, runs[i].number)
		case j == i+1:
			fmt.Fprintf(&b, "%d, %d", runs[i].number, runs[j].number)
		default:
			fmt.Fprintf(&b, "%d–%d", runs[i].number, runs[j].number)
		}
		i = j + 1
	}
	return b.String()
}

// span says when runs started, to the minute.
func span(runs []*run) string {
	var first, last time.Time
	for _, r := range runs {
		if r.Started.IsZero() {
			continue
		}
		if first.IsZero() || r.Started.Before(first) {
			first = r.Started
		}
		if r.Started.After(last) {
			last = r.Started
		}
	}
	const form = "2006-01-02 15:04 MST"
	switch {
	case first.IsZero():
		return ""
	case first.UTC().Format(form) == last.UTC().Format(form):
		return first.UTC().Format(form)
	}
	return first.UTC().Format(form) + " to " + last.UTC().Format(form)
}
