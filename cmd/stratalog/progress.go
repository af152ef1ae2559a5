package main

import (
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows a bar for each phase of a long command. It writes nothing if
// its writer is no terminal.
type progress struct {
	bars  *mpb.Progress
	bar   *mpb.Bar
	phase string
}

func newProgress(w io.Writer) *progress {
	return &progress{bars: mpb.New(mpb.WithOutput(w), mpb.WithWidth(50))}
}

// tell is a perf.Progress.
func (p *progress) tell(phase string, done, total int64) {
	if phase != p.phase {
		p.drop()
		p.phase = phase
		p.bar = p.bars.AddBar(total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(phase+" "), decor.CountersNoUnit("%d / %d")),
			mpb.AppendDecorators(decor.Percentage()))
	}
	p.bar.SetCurrent(done)
}

// drop takes the bar away.
func (p *progress) drop() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar = nil
	}
}

// end takes the last bar away and waits until the terminal is as it was.
func (p *progress) end() {
	p.drop()
	p.bars.Wait()
}
