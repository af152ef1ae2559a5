package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/contract"
)

// stratalogEngine is the store of this module, whole: log, queue lane, reads
// through the queue.
var stratalogEngine = &engine{
	name:     ours,
	sync:     synced("own group commit; fdatasync"),
	memory:   promise{process: true, text: "in the page cache, through a mapping; synced within 500 ms"},
	syncs:    1,
	settings: "defaults, one queue, its lane running; for memory: Durability Memory",
	checks:   "CRC-32 of each whole record, on each read",
	alone:    wayNative, many: []way{wayNative}, async: []way{wayNative},
	open: openStratalog,
}

const topic = "bench"

type stratalogStore struct {
	*stratalog.Store
	durability stratalog.Durability
	messages   []stratalog.Message // one for each producer
	records    stratalog.Records
}

func openStratalog(dir string, s settings) (store, error) {
	ctx := context.Background()
	durability := stratalog.Sync
	if s.mode == modeMemory {
		durability = stratalog.Memory
	}
	inner, err := stratalog.Open(ctx, stratalog.Options{Dir: dir, Durability: durability})
	if err != nil {
		return nil, err
	}
	if err := inner.Start(ctx); err != nil {
		return nil, err
	}
	st := &stratalogStore{Store: inner, durability: durability, messages: make([]stratalog.Message, s.producers)}
	for p := range st.messages {
		st.messages[p].Topic = topic
	}
	return st, nil
}

func (s *stratalogStore) Append(producer int, body []byte) error {
	m := &s.messages[producer]
	m.Body = body
	_, err := s.Store.Append(context.Background(), m, s.durability)
	return err
}

// Slot returns an Append that does not wait.
func (s *stratalogStore) Slot(producer int, done func(error)) func(body []byte) error {
	answered := func(_ stratalog.Receipt, err error) { done(err) }
	return func(body []byte) error {
		m := &s.messages[producer]
		m.Body = body
		return s.Store.Submit(context.Background(), m, s.durability, answered)
	}
}

func (s *stratalogStore) Scan(visit func([]byte) error) error {
	if err := s.WaitVisible(context.Background(), s.Health().Watermarks.Appended); err != nil {
		return err
	}
	for at := int64(0); ; {
		if err := s.get(at, stratalog.MaxCount); err != nil {
			return err
		}
		if s.records.Len() == 0 {
			if s.records.Status == contract.GetOffsetOverflowOne || s.records.Status == contract.GetNoMessageInQueue ||
				s.records.Status == contract.GetNoMatchedLogicQueue {
				return nil
			}
			return fmt.Errorf("%s at queue offset %d", s.records.Status, at)
		}
		for i := range s.records.Len() {
			if err := visit(s.records.At(i).Body()); err != nil {
				return err
			}
		}
		at = s.records.Next
	}
}

func (s *stratalogStore) get(at int64, count int) error {
	return s.Get(context.Background(), stratalog.Request{Topic: topic, Offset: at, MaxCount: count}, &s.records)
}

func (s *stratalogStore) Read(n int64, visit func([]byte)) error {
	if err := s.get(n, 1); err != nil {
		return err
	}
	if s.records.Len() != 1 {
		return fmt.Errorf("%s at queue offset %d", s.records.Status, n)
	}
	visit(s.records.At(0).Body())
	return nil
}

func (s *stratalogStore) Syncs() int64 { return s.Health().Stats.Syncs }

func (s *stratalogStore) Close() error {
	s.records.Release()
	report, err := s.Store.Close(context.Background())
	if err == nil && !report.Clean {
		err = errors.New("the store did not close cleanly")
	}
	return err
}
