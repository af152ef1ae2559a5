package report

import (
	"fmt"
	"slices"
	"strings"
)

// facts says in a few words what the page is about.
func facts(runs []*run) []string {
	var engines, workloads, cpus, commits []string
	add := func(list []string, v string) []string {
		if v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
		return list
	}
	for _, r := range runs {
		engines, workloads = add(engines, r.Engine), add(workloads, r.Workload)
		cpus, commits = add(cpus, r.Env.CPU), add(commits, short(r.Env.Commit))
	}
	list := []string{plural(len(runs), "run")}
	if s := span(runs); s != "" {
		list = append(list, s)
	}
	for _, one := range []struct {
		what   string
		values []string
	}{{"engine", engines}, {"workload", workloads}, {"machine", cpus}, {"commit", commits}} {
		switch n := len(one.values); {
		case n == 0:
		case n <= 3:
			list = append(list, one.what+" "+strings.Join(one.values, ", "))
		default:
			list = append(list, plural(n, one.what))
		}
	}
	return list
}

// historyFacts says in a few words what the history is.
func historyFacts(history []Baseline) []string {
	first, last := history[0].Date, history[0].Date
	for _, b := range history {
		if b.Date.Before(first) {
			first = b.Date
		}
		if b.Date.After(last) {
			last = b.Date
		}
	}
	const form = "2006-01-02"
	return []string{plural(len(history), "accepted baseline"), first.UTC().Format(form) + " to " + last.UTC().Format(form)}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// mostBad is how many bad runs are named at once.
const mostBad = 12

// verdictOf says whether all runs can be relied on, and what is wrong with those
// that cannot.
func verdictOf(runs []*run) verdict {
	var v verdict
	records, good := int64(0), 0
	var rest []*run
	for _, r := range runs {
		switch r.outcome() {
		case behind:
			if r.Verified.OK {
				records += max(r.Verified.Records, 0)
			}
			v.Behind = append(v.Behind, r.lateness())
		case sound:
			records += max(r.Verified.Records, 0)
			good++
		case unread:
			rest = append(rest, r)
		default:
			v.Bad = append(v.Bad, r.trouble())
		}
	}
	found := ": " + plainCount(records) + " read back and found right"
	switch {
	case len(v.Bad) > 0:
		v.Look, v.Text = "wrong", fmt.Sprintf("%d of %s cannot be relied on", len(v.Bad), plural(len(runs), "run"))
	case len(v.Behind) > 0:
		v.Look, v.Text = "behind", fmt.Sprintf("%d of %s did not get the load that was asked for", len(v.Behind), plural(len(runs), "run"))
		if records > 0 {
			v.Text += found
		}
	case good == 0:
		v.Look, v.Text = "partly", "Nothing was read back"
	case len(rest) > 0:
		v.Look, v.Text = "partly", fmt.Sprintf("%d of %s are verified", good, plural(len(runs), "run"))+found
	case len(runs) == 1:
		v.Look, v.Text = "good", "Verified"+found
	default:
		v.Look, v.Text = "good", fmt.Sprintf("All %d runs are verified", len(runs))+found
	}
	if len(v.Bad) > mostBad {
		v.Bad, v.More = v.Bad[:mostBad], v.Bad[mostBad:]
	}
	if len(rest) > 0 && len(rest) < len(runs) {
		var workloads []string
		for _, r := range rest {
			if !slices.Contains(workloads, r.Workload) {
				workloads = append(workloads, r.Workload)
			}
		}
		v.Rest = fmt.Sprintf("%s had nothing read back, of: %s.", plural(len(rest), "run"), strings.Join(workloads, ", "))
	}
	return v
}

// trouble says what is wrong with a bad run.
func (r *run) trouble() string {
	text := fmt.Sprintf("Run %d, %s: %s", r.number, strings.TrimSpace(r.Engine+" "+r.Workload), r.state())
	if r.Verified.Missing != 0 || r.Verified.Wrong != 0 {
		text += fmt.Sprintf(" (%s missing, %s wrong)", count(float64(r.Verified.Missing)), count(float64(r.Verified.Wrong)))
	}
	if r.Verified.First != "" {
		text += "; first: " + clip(r.Verified.First, 300)
	}
	return text
}

// lateness says what a run was asked for and did not get.
func (r *run) lateness() string {
	op := r.late()
	text := fmt.Sprintf("Run %d, %s: %s", r.number, strings.TrimSpace(r.Engine+" "+r.Workload), r.state())
	if op.Rate > 0 {
		text += fmt.Sprintf("; %s %s/s, asked for %s/s", op.Name, digits(op.RecordsPerSec), digits(op.Rate))
	}
	if op.Unsent > 0 {
		text += fmt.Sprintf("; %s messages were due and never sent", count(float64(op.Unsent)))
	}
	return text
}

func plainCount(n int64) string {
	if n == 1 {
		return "1 record"
	}
	return grouped(fmt.Sprint(n)) + " records"
}

// promisesOf lists what an acknowledgement of each engine means, engine by
// engine.
func promisesOf(runs []*run) promises {
	var engines []string
	of := map[string][]string{}
	for _, r := range runs {
		text := r.Promise
		if text == "" {
			text = "nothing that the run tells"
		}
		if of[r.Engine] == nil {
			engines = append(engines, r.Engine)
		}
		if !slices.Contains(of[r.Engine], text) {
			of[r.Engine] = append(of[r.Engine], text)
		}
	}
	var list promises
	for _, engine := range engines {
		for i, text := range of[engine] {
			p := promise{engine, text}
			if i > 0 {
				p.Engine = ""
			}
			list = append(list, p)
		}
	}
	return list
}

// notesOf lists the remarks, each once, with the runs that made it.
func notesOf(runs []*run) []note {
	var texts []string
	by := map[string][]*run{}
	for _, r := range runs {
		remarks := r.Notes
		if r.Verified.How != "" {
			remarks = append(slices.Clone(remarks), "Read back: "+r.Verified.How)
		}
		for _, text := range remarks {
			if len(by[text]) == 0 {
				texts = append(texts, text)
			}
			if n := len(by[text]); n == 0 || by[text][n-1] != r {
				by[text] = append(by[text], r)
			}
		}
	}
	var list []note
	for _, text := range texts {
		who := "all runs"
		if len(by[text]) < len(runs) {
			who = "run " + numberList(by[text])
			if len(by[text]) > 1 {
				who = "runs " + numberList(by[text])
			}
		}
		list = append(list, note{who, text})
	}
	return list
}
