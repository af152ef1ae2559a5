package report

import (
	"math"
	"strconv"
)

// chart is what the script draws. Its names are short because they are in the
// page.
type chart struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"` // lines or bars
	Title string `json:"title,omitempty"`
	// Unit says how values are written: us, rate, ratio, or a word to put
	// behind them.
	Unit   string `json:"unit"`
	XLabel string `json:"xlabel,omitempty"`
	// XShort is the label of X where there is no room for the texts of ticks.
	XShort string `json:"xshort,omitempty"`
	YLabel string `json:"ylabel"`
	XLog   bool   `json:"xlog,omitempty"`
	YLog   bool   `json:"ylog,omitempty"`
	// Range is that of the values, where charts share it.
	Range []num `json:"range,omitempty"`
	X     []num `json:"x"`
	// Heads are what is said above the values at each X; where there are none
	// X is seconds.
	Heads []string `json:"heads,omitempty"`
	Ticks []tick   `json:"ticks,omitempty"`
	// Cats is the category of each X of bars.
	Cats   []int    `json:"cats,omitempty"`
	Series []series `json:"series"`
	// Line is drawn across at this value, if it is not 0.
	Line num `json:"line,omitempty"`
	// Small charts stand in rows of many.
	Small bool `json:"small,omitempty"`

	// Text says what there is to see, for those who do not.
	Text string `json:"-"`
}

// tick is a place on the axis of X and what stands there; Short where there is
// no room for that.
type tick struct {
	X     num    `json:"x"`
	Text  string `json:"t"`
	Short string `json:"s,omitempty"`
}

// series is one line, or the bars of one colour. Key is that of its legend.
type series struct {
	Key  int   `json:"key"`
	Dash bool  `json:"dash,omitempty"`
	Y    []num `json:"y"`
	// Open are the places of values that are not decided, Gaps those at which
	// there is none on purpose: the line does not go on across them.
	Open []int `json:"open,omitempty"`
	Gaps []int `json:"gaps,omitempty"`
	// Low and High are the range of repeats, or of what a value may be.
	Low  []num `json:"lo,omitempty"`
	High []num `json:"hi,omitempty"`
}

// drawn tells whether any value is.
func (c *chart) drawn() bool {
	for _, s := range c.Series {
		for _, y := range s.Y {
			if !y.missing() {
				return true
			}
		}
	}
	return false
}

// fill makes lists of what is missing, so that the page need not expect null.
func (c *chart) fill() {
	if c.X == nil {
		c.X = []num{}
	}
	if c.Series == nil {
		c.Series = []series{}
	}
	for i := range c.Series {
		if c.Series[i].Y == nil {
			c.Series[i].Y = blanks(len(c.X))
		}
	}
}

// num is a number in the page: null if there is none, and not longer than eyes
// can tell.
type num float64

var missing = num(math.NaN())

func (n num) missing() bool { return math.IsNaN(float64(n)) }

// MarshalJSON writes six digits.
func (n num) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, f, 'g', 6, 64), nil
}

// Values beyond these are not drawn: they would push all others into a line.
const (
	leastDrawn = 1e-6
	mostDrawn  = 1e15
)

// drawable is f, or missing if it cannot be drawn.
func drawable(f float64, log bool) num {
	if math.IsNaN(f) || math.Abs(f) > mostDrawn || log && f < leastDrawn || f < 0 {
		return missing
	}
	return num(f)
}

// block is charts that share a legend.
type block struct {
	Title, Note string
	Legend      []legendItem
	Charts      []*chart
	// Folded blocks are opened by the reader.
	Folded bool
	Small  bool
}

// legendItem is one entry of a legend.
type legendItem struct {
	Key   int
	Mark  string
	Label string
	// Off entries are not drawn until they are asked for.
	Off bool
}

// The look of a key: keys with one colour differ in shape.
const (
	colours = 8
	shapes  = 7
)

// Colour returns the number of the colour, from 0.
func (l legendItem) Colour() int { return l.Key % colours }

// Shape returns the number of the shape, from 0.
func (l legendItem) Shape() int { return l.Key % shapes }

// prune drops charts that show nothing, and tells whether any is left.
func (b *block) prune() bool {
	var kept []*chart
	for _, c := range b.Charts {
		if c.drawn() {
			kept = append(kept, c)
		}
	}
	b.Charts = kept
	return len(kept) > 0
}

// shareRange gives all charts the range of all their values.
func shareRange(charts []*chart) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, c := range charts {
		for _, s := range c.Series {
			for _, y := range s.Y {
				if !y.missing() {
					low, high = min(low, float64(y)), max(high, float64(y))
				}
			}
		}
	}
	if low > high || len(charts) < 2 {
		return
	}
	for _, c := range charts {
		c.Range = []num{num(low), num(high)}
	}
}
