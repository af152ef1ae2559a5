package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/stratalog/stratalog"
)

// appendSummary is what an append command did.
type appendSummary struct {
	Messages   int64  `json:"messages"`
	Bytes      int64  `json:"bytes"`
	Topics     int    `json:"topics"`
	Durability string `json:"durability"`
	// Topic, Queue and the offsets are left out with --files.
	Topic       string `json:"topic,omitempty"`
	Queue       *int32 `json:"queue,omitempty"`
	FirstOffset *int64 `json:"first_offset,omitempty"`
	LastOffset  *int64 `json:"last_offset,omitempty"`
	// End is the log's end behind the last message.
	End stratalog.Offset `json:"end"`
}

// pipeline submits messages with many on their way at a time.
type pipeline struct {
	store      *stratalog.Store
	durability stratalog.Durability
	pending    sync.WaitGroup
	topics     map[string]struct{}

	mu    sync.Mutex
	sum   appendSummary // acknowledged messages only
	inLog int64         // not acknowledged, and in the log all the same
	err   error         // the first failure
}

func newPipeline(store *stratalog.Store, d stratalog.Durability) *pipeline {
	return &pipeline{store: store, durability: d, topics: map[string]struct{}{},
		sum: appendSummary{Durability: d.String()}}
}

// pump submits all of src, until one fails. The failure of a message names it.
func (p *pipeline) pump(ctx context.Context, src source) error {
	var m stratalog.Message
	named := func(n int64, err error) error {
		if err == nil || ctx.Err() != nil {
			return err // an interrupt is not the message's fault
		}
		return fmt.Errorf("%s: %w", src.name(n), err)
	}
	for n := int64(0); p.failed() == nil; n++ {
		switch err := src.next(ctx, &m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		size := int64(len(m.Body))
		p.pending.Add(1)
		err := p.store.Submit(ctx, &m, p.durability, func(r stratalog.Receipt, err error) { p.answered(r, size, named(n, err)) })
		if err != nil {
			p.pending.Done()
			return named(n, err)
		}
		if _, ok := p.topics[m.Topic]; !ok {
			p.topics[m.Topic] = struct{}{}
		}
	}
	return nil // wait returns why
}

func (p *pipeline) answered(r stratalog.Receipt, size int64, err error) {
	defer p.pending.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	place, in := r.Range()
	if err != nil {
		if p.err == nil {
			p.err = err
		}
		if in {
			p.inLog++
		}
		return
	}
	p.sum.Messages++
	p.sum.Bytes += size
	at := r.QueueOffset()
	if p.sum.FirstOffset == nil {
		p.sum.FirstOffset, p.sum.LastOffset = new(int64), new(int64)
		*p.sum.FirstOffset = at
	}
	*p.sum.FirstOffset, *p.sum.LastOffset = min(at, *p.sum.FirstOffset), max(at, *p.sum.LastOffset)
	p.sum.End = max(p.sum.End, place.End)
}

func (p *pipeline) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// wait waits for every answer and returns the first failure.
func (p *pipeline) wait() error {
	p.pending.Wait()
	p.sum.Topics = len(p.topics)
	return p.failed()
}

// counted adds to err how many messages are in the log, so that it is known
// where to go on.
func (p *pipeline) counted(err error) error {
	more := ""
	if p.inLog > 0 {
		more = fmt.Sprintf(", and %d more are in the log without the durability that was asked for", p.inLog)
	}
	return fmt.Errorf("%w (%d messages were appended%s)", err, p.sum.Messages, more)
}
