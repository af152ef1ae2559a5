package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsEngine is a stream of JetStream, in an embedded server. The store under
// it is not exported, so that its client, its protocol and a pipe inside the
// process are part of what is measured: it is what a user gets.
var natsEngine = &engine{
	name:     "nats-js",
	module:   "github.com/nats-io/nats-server/v2",
	sync:     synced("SyncAlways: one fsync for each message, before its answer; a batch is an atomic one, staged in a store of its own, with one fsync of the stream"),
	memory:   promise{process: true, text: "the default: written, not synced for up to 2 minutes"},
	syncs:    5,
	settings: "one stream of files, one connection inside the process; the answer is the stream's own PubAck",
	checks:   "a HighwayHash of each record",
	alone:    wayNative, many: []way{wayBatch, wayNative}, async: []way{wayNative},
	open: openNATS,
}

const (
	natsStream = "log"
	// natsBatch bounds an atomic batch: the server takes 1000.
	natsBatch = 1000
	natsWait  = 10 * time.Second
)

type natsStore struct {
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	sync   bool
	batch  int
}

func openNATS(dir string, s settings) (store, error) {
	st := &natsStore{sync: s.mode == modeSync}
	var err error
	st.server, err = server.NewServer(&server.Options{JetStream: true, StoreDir: dir, DontListen: true, NoLog: true,
		NoSigs: true, SyncAlways: st.sync, JetStreamMaxStore: 64 << 30, JetStreamMaxMemory: 1 << 30})
	if err != nil {
		return nil, err
	}
	st.server.Start()
	if err := st.connect(); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

func (s *natsStore) connect() (err error) {
	if !s.server.ReadyForConnections(natsWait) {
		return errors.New("the server does not start")
	}
	if s.conn, err = nats.Connect("", nats.InProcessServer(s.server)); err != nil {
		return err
	}
	if s.js, err = jetstream.New(s.conn, jetstream.WithPublishAsyncMaxPending(4096)); err != nil {
		return err
	}
	s.stream, err = s.js.CreateOrUpdateStream(context.Background(), jetstream.StreamConfig{Name: natsStream,
		Subjects: []string{natsStream}, Storage: jetstream.FileStorage, AllowDirect: true, AllowAtomicPublish: true})
	return err
}

func (s *natsStore) Append(_ int, body []byte) error {
	_, err := s.js.Publish(context.Background(), natsStream, body)
	return err
}

// AppendBatch publishes atomic batches: all messages but the last are sent
// without an answer, the last one commits them. Without syncs it is faster to
// publish them one by one and to wait for all answers.
func (s *natsStore) AppendBatch(bodies [][]byte) error {
	if !s.sync {
		return s.publishAll(bodies)
	}
	for len(bodies) > 0 {
		n := min(len(bodies), natsBatch)
		if err := s.atomic(bodies[:n]); err != nil {
			return err
		}
		bodies = bodies[n:]
	}
	return nil
}

func (s *natsStore) atomic(bodies [][]byte) error {
	s.batch++
	id := strconv.Itoa(s.batch)
	for i, body := range bodies {
		m := &nats.Msg{Subject: natsStream, Data: body, Header: nats.Header{"Nats-Batch-Id": {id},
			"Nats-Batch-Sequence": {strconv.Itoa(i + 1)}}}
		if i < len(bodies)-1 {
			if err := s.conn.PublishMsg(m); err != nil {
				return err
			}
			continue
		}
		m.Header["Nats-Batch-Commit"] = []string{"1"}
		if _, err := s.js.PublishMsg(context.Background(), m); err != nil {
			return err
		}
	}
	return nil
}

func (s *natsStore) publishAll(bodies [][]byte) error {
	answers := make([]jetstream.PubAckFuture, len(bodies))
	for i, body := range bodies {
		var err error
		if answers[i], err = s.js.PublishAsync(natsStream, body); err != nil {
			return err
		}
	}
	for _, a := range answers {
		if err := natsAnswer(a); err != nil {
			return err
		}
	}
	return nil
}

// natsAnswer waits for an answer.
func natsAnswer(a jetstream.PubAckFuture) error {
	select {
	case <-a.Ok():
		return nil
	case err := <-a.Err():
		return err
	}
}

// Slot returns an Append that does not wait: PublishAsync.
func (s *natsStore) Slot(_ int, done func(error)) func(body []byte) error {
	var answer jetstream.PubAckFuture
	var kept []byte // the client holds on to the message
	submit := func(body []byte) (err error) {
		kept = append(kept[:0], body...)
		answer, err = s.js.PublishAsync(natsStream, kept)
		return err
	}
	return slot(submit, func() error { return natsAnswer(answer) }, done)
}

func (s *natsStore) Read(n int64, visit func([]byte)) error {
	m, err := s.stream.GetMsg(context.Background(), uint64(n)+1)
	if err == nil {
		visit(m.Data)
	}
	return err
}

func (s *natsStore) Scan(visit func([]byte) error) error {
	info, err := s.stream.Info(context.Background())
	if err != nil || info.State.Msgs == 0 {
		return err
	}
	c, err := s.stream.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	messages, err := c.Messages(jetstream.PullMaxMessages(4096))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for range info.State.Msgs {
		m, err := messages.Next(jetstream.NextMaxWait(natsWait))
		if err != nil {
			return fmt.Errorf("a scan: %w", err)
		}
		if err := visit(m.Data()); err != nil {
			return err
		}
	}
	return nil
}

func (s *natsStore) Close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	s.server.Shutdown()
	s.server.WaitForShutdown()
	return nil
}
