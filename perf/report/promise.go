package report

import (
	"slices"
	"strings"

	"github.com/stratalog/stratalog/perf/load"
)

// levelParams are the parameters that say what an answer waits for, if their
// value is one of levels.
var (
	levelParams = []string{"durability", "mode"}
	levels      = []string{"sync", "interval", "memory"}
)

// isLevel tells whether an attribute says what an answer waits for.
func (a attribute) isLevel() bool { return a.source == fromConfig && a.name == levelParams[0] }

// levelOf is what an answer of the run waits for, empty if no parameter says it.
func levelOf(config []load.Param) string {
	for _, p := range config {
		v := strings.ToLower(p.Value)
		if slices.Contains(levelParams, p.Name) && slices.Contains(levels, v) {
			return v
		}
	}
	return ""
}

// samePromise tells whether answers of two groups are worth the same, so that
// what they cost can be compared: they wait for the same and say the same of it.
// Engines word one promise in their own ways.
func samePromise(a, b *group) bool {
	one, other := a.first(), b.first()
	level, another := levelOf(one.Config), levelOf(other.Config)
	if one.Promise == other.Promise {
		return level == another || level == "" || another == ""
	}
	return one.Engine != other.Engine && level != "" && level == another
}

// byPromise takes groups apart by what their answers are worth.
func byPromise(groups []*group) [][]*group {
	var classes [][]*group
	for _, g := range groups {
		at := slices.IndexFunc(classes, func(c []*group) bool {
			return !slices.ContainsFunc(c, func(other *group) bool { return !samePromise(g, other) })
		})
		if at < 0 {
			at = len(classes)
			classes = append(classes, nil)
		}
		classes[at] = append(classes[at], g)
	}
	return classes
}

// promiseName names what the answers of groups are worth, in a few words.
func promiseName(groups []*group) string {
	r := groups[0].first()
	if level := levelOf(r.Config); level != "" {
		return level
	}
	if r.Promise == "" {
		return "no promise"
	}
	return clip(r.Promise, 40)
}
