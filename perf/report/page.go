package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// Input is what a page is made of: runs, a history, or both.
type Input struct {
	// Title is the headline; empty stands for a plain one.
	Title string
	// Base names the engine that others are compared with; empty stands for
	// that of the first run.
	Base    string
	Sources []Source
	// Again is how many runs were given more than once and are left out of
	// Sources; the page says so. See Distinct.
	Again   int
	History []Baseline
}

// ErrNothing says that there is neither a run nor a history to report on.
var ErrNothing = errors.New("neither a run nor a history to report on")

// ErrNoBase says that no run is of the engine that others were to be compared
// with.
var ErrNoBase = errors.New("no run is of this engine")

// Unsound returns how many runs were interrupted, or not found right.
func (in *Input) Unsound() int { return in.count(bad) }

// Behind returns how many runs were sound otherwise and did not get the load that
// was asked for: they left messages unsent, or an open loop did not reach 99 % of
// its rate.
func (in *Input) Behind() int { return in.count(behind) }

// Unread returns how many runs were not read back because there was nothing to
// read, or because they were not to be.
func (in *Input) Unread() int { return in.count(unread) }

func (in *Input) count(o outcome) int {
	n := 0
	for i := range in.Sources {
		if r := (run{Run: in.Sources[i].Run}); r.outcome() == o {
			n++
		}
	}
	return n
}

// page is what the template sees.
type page struct {
	Title          string
	Policy         string
	Styles         []template.CSS
	Scripts        []template.JS
	Charts, Runs   template.JS
	Licence        string
	Facts          []string
	Verdict        verdict
	Promises       promises
	Sections       []sectionView
	Environment    table
	Raw            table
	Notes          []note
	History        []*block
	Trends, Lines  table
	HasRuns, HasHi bool
}

// verdict says at the top what the runs are worth.
type verdict struct {
	// Look is good, partly, behind or wrong.
	Look, Text string
	// Bad is what is wrong, run by run, More what there is no room for.
	Bad, More []string
	// Behind is which runs did not get the load that was asked for.
	Behind []string
	// Rest says what was not read back.
	Rest string
}

// ManyBehind tells that the list of those behind is better folded.
func (v verdict) ManyBehind() bool { return len(v.Behind) > mostBad }

type promise struct{ Engine, Text string }

type promises []promise

// Long tells that the list is better folded.
func (p promises) Long() bool { return len(p) > 8 }

type note struct{ Runs, Text string }

type sectionView struct {
	ID, Name  string
	Intro     string
	Ops       []opView
	Config    table
	Resources table
}

type opView struct {
	ID, Name string
	Summary  table
	Blocks   []*block
}

// Write writes the page of in. Its error is ErrNothing, ErrNoBase, one of the
// chart library, or one of w.
func Write(w io.Writer, in Input) error {
	if len(in.Sources) == 0 && len(in.History) == 0 {
		return ErrNothing
	}
	engine := func(s Source) bool { return s.Run.Engine == in.Base }
	if in.Base != "" && !slices.ContainsFunc(in.Sources, engine) {
		return fmt.Errorf("%w: %s", ErrNoBase, abridge(in.Base))
	}
	lib, err := chartLibrary()
	if err != nil {
		return err
	}
	p, err := newPage(in)
	if err != nil {
		return err
	}
	p.Styles = []template.CSS{template.CSS(lib.style), template.CSS(pageCSS)}
	p.Scripts = []template.JS{template.JS(lib.script), template.JS(pageJS)}
	p.Policy = policy(p.Styles, p.Scripts)
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// policy lets the page run what is written in it and nothing else, and load
// nothing at all.
func policy(styles []template.CSS, scripts []template.JS) string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	var b strings.Builder
	b.WriteString("default-src 'none'; script-src")
	for _, s := range scripts {
		b.WriteString(hash(string(s)))
	}
	b.WriteString("; style-src")
	for _, s := range styles {
		b.WriteString(hash(string(s)))
	}
	b.WriteString("; base-uri 'none'; form-action 'none'")
	return b.String()
}

func newPage(in Input) (*page, error) {
	p := &page{Title: in.Title, Licence: uPlotLicence, HasRuns: len(in.Sources) > 0, HasHi: len(in.History) > 0}
	if p.Title == "" {
		p.Title = "Benchmark report"
	}
	runs := make([]*run, len(in.Sources))
	for i, s := range in.Sources {
		runs[i] = &run{Run: s.Run, number: i + 1, file: baseName(s.File), raw: s.Raw}
		if runs[i].raw == nil {
			raw, err := json.Marshal(s.Run)
			if err != nil {
				return nil, fmt.Errorf("run %d: %w", i+1, err)
			}
			runs[i].raw = raw
		}
	}
	if p.HasRuns {
		p.Facts, p.Verdict, p.Promises, p.Notes = facts(runs), verdictOf(runs), promisesOf(runs), notesOf(runs)
		if in.Again > 0 {
			p.Facts = append(p.Facts, plural(in.Again, "run")+" given more than once, counted once")
		}
		p.Environment, p.Raw = envTable(runs), rawTable(runs)
	}
	charts := []*chart{} // a page of none holds an empty list
	for i, s := range sections(runs, in.Base) {
		v := s.view(i + 1)
		for _, o := range v.Ops {
			charts = append(charts, number(o.Blocks, len(charts))...)
		}
		p.Sections = append(p.Sections, v)
	}
	if p.HasHi {
		p.Facts = append(p.Facts, historyFacts(in.History)...)
		p.History, p.Trends, p.Lines = historyBlocks(in.History), trendTable(in.History), baselineTable(in.History)
		charts = append(charts, number(p.History, len(charts))...)
	}
	var err error
	if p.Charts, err = embed(charts); err != nil {
		return nil, err
	}
	all := make([]json.RawMessage, len(runs))
	for i, r := range runs {
		all[i] = r.raw
	}
	p.Runs, err = embed(all)
	return p, err
}

// embed writes v so that it can stand in a script element: the encoder escapes
// what could end one.
func embed(v any) (template.JS, error) {
	b, err := json.Marshal(v)
	return template.JS(b), err
}

// number gives the charts of blocks their names, and returns them.
func number(blocks []*block, from int) []*chart {
	var list []*chart
	for _, b := range blocks {
		for _, c := range b.Charts {
			c.fill()
			c.ID = fmt.Sprintf("chart-%d", from+len(list)+1)
			list = append(list, c)
		}
	}
	return list
}

// baseName is the last element of a path: where files lay is nobody's business.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}

// view makes what the template sees of a section.
func (s *section) view(number int) sectionView {
	whole := s.whole()
	v := sectionView{ID: fmt.Sprintf("workload-%d", number), Name: s.workload, Config: whole.configTable(!s.split), Resources: whole.resources(!s.split)}
	if v.Name == "" {
		v.Name = "unnamed workload"
	}
	switch {
	case len(s.groups) == 0:
	case s.matrix():
		v.Intro = fmt.Sprintf("Under %d loads. Lines under the same load are compared with the first of them.", len(s.cells))
	case s.compared():
		if c := s.cells[0]; c != "" {
			v.Intro = "All under one load: " + c + "."
		}
	case s.alone():
		v.Intro = "Under several loads: " + s.subjects[0] + "."
		if s.split {
			v.Intro = "Several operations: " + s.subjects[0] + "."
		}
	}
	if n := len(byPromise(s.groups)); n > 1 {
		v.Intro = strings.TrimSpace(v.Intro + fmt.Sprintf(" Answers make %d different promises here: ratios, stars and bars compare only lines that promise the same.", n))
	}
	if s.worth() == unread && slices.ContainsFunc(s.groups, func(g *group) bool { return g.outcome() == unread }) {
		v.Intro = strings.TrimSpace(v.Intro + " Nothing was read back here.")
	}
	for i, op := range s.ops {
		o := opView{ID: fmt.Sprintf("%s-%d", v.ID, i+1), Name: op, Summary: s.summary(op, i == 0 && !s.split), Blocks: s.blocks(op)}
		if s.split {
			o.Name = "operations"
		}
		v.Ops = append(v.Ops, o)
	}
	return v
}
