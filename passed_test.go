package stratalog

import (
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/internal/vfs"
)

// passed are messages of every kind that a store takes as they are.
func passed(t *testing.T) (msgs []Message) {
	t.Helper()
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	if _, err := w.Write(body(500)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	add := func(flag codec.SysFlag, body []byte, properties ...string) {
		var props []byte
		for i := 0; i < len(properties); i += 2 {
			props = codec.AppendProperty(props, properties[i], properties[i+1])
		}
		props = codec.AppendProperty(props, codec.PropertyKeys, fmt.Sprint("n", len(msgs)))
		msgs = append(msgs, Message{Topic: "t", Flag: int32(len(msgs)) - 3, SysFlag: int32(flag), Body: body, Properties: props,
			BornTimestamp: 1_600_000_000_000 + int64(len(msgs)), ReconsumeTimes: int32(len(msgs) % 3)})
	}
	const c = codec.SysFlagCompressed
	for _, kind := range []codec.SysFlag{codec.SysFlagCompressionLegacy, codec.SysFlagCompressionLZ4, codec.SysFlagCompressionZSTD, codec.SysFlagCompressionZLIB} {
		add(c|kind, deflated.Bytes(), "TAGS", "zip")
		add(c|kind, nil)              // An empty body may say that it is compressed.
		add(kind, []byte("plain"))    // A kind without the flag means nothing.
		add(c|kind, []byte("no zip")) // It is not for a store to know.
	}
	add(codec.SysFlagMultiTags, []byte("x"), "TAGS", "a || b")
	add(codec.SysFlagNeedUnwrap|c, deflated.Bytes())
	add(0, []byte{0, 1, 2, 255}, "PGROUP", "g", "REAL_TOPIC", "other", "REAL_QID", "3", "__transactionId__", "7")
	add(codec.SysFlagTransactionCommit, []byte("done"), "TRAN_MSG", "true", "UNIQ_KEY", "u")
	add(0, body(600), "long", strings.Repeat("v", 2000), "ünï", "😀", "DELAY", "3", "WAIT", "false", "DUP_INFO", "1_2")
	return msgs
}

// TestPassedThrough: bodies, compressed ones and others, flags and properties come
// out as they were given, by every read, behind a reopen and a rebuild.
func TestPassedThrough(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	s := start(t, opt)
	msgs := passed(t)
	var receipts []Receipt
	for i := range msgs {
		receipts = append(receipts, mustAppend(t, s, &msgs[i], Sync))
	}
	waitVisible(t, s, endOf(receipts[len(msgs)-1]))
	waitIndexed(t, s)
	same := func(what string, i int, r *Record) {
		t.Helper()
		m := &msgs[i]
		props := codec.StripChecksum(r.Properties(), nil)
		if string(r.Body()) != string(m.Body) || int32(r.SysFlag()) != m.SysFlag || r.Flag() != m.Flag || string(props) != string(m.Properties) ||
			r.BornTimestamp() != m.BornTimestamp || r.ReconsumeTimes() != m.ReconsumeTimes || r.StoreTimestamp() != receipts[i].StoreTime() {
			t.Errorf("%s: message %d: flags %v, %d, body %q, properties %q", what, i, r.SysFlag(), r.Flag(), r.Body(), r.Properties())
		}
		if m.SysFlag&int32(codec.SysFlagCompressed) == 0 || len(m.Body) < 10 {
			return
		}
		z, err := zlib.NewReader(bytes.NewReader(r.Body()))
		if err != nil {
			t.Fatalf("%s: message %d: %v", what, i, err)
		}
		if b, err := io.ReadAll(z); err != nil || !bytes.Equal(b, body(500)) {
			t.Errorf("%s: message %d: %d bytes, %v", what, i, len(b), err)
		}
	}
	all := func(what string, s reading) {
		t.Helper()
		var out Records
		var rec Record
		var found Matches
		if err := s.Get(t.Context(), Request{Topic: "t", MaxCount: 100}, &out); err != nil || out.Len() != len(msgs) {
			t.Fatal(out.Len(), err)
		}
		for i := range msgs {
			same(what, i, out.At(i))
			place, _ := receipts[i].Range()
			if ok, err := s.GetAt(t.Context(), place.Start, &rec); err != nil || !ok {
				t.Fatal(ok, err)
			}
			same(what+", by place", i, &rec)
			if err := s.QueryKey(t.Context(), Query{Topic: "t", Key: fmt.Sprint("n", i)}, &found); err != nil || found.Len() != 1 {
				t.Fatalf("%s: key of %d: %d found, %v", what, i, found.Len(), err)
			}
			same(what+", by key", i, found.At(0))
		}
		out.Release()
		rec.Release()
		found.Release()
	}
	all("at once", s)
	closeClean(t, s)
	all("a reader", openReading(t, opt, ReaderOptions{}))
	s, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Strata() {
		if _, err := s.Rebuild(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	all("rebuilt", s)
	closeClean(t, s)
	verifyClean(t, opt)
}

// TestClientBatch: the messages of a batch as clients send it become records of
// their own, with numbers in a row and one store time; and a batch that is kept
// whole, as an inner batch, comes out as it went in.
func TestClientBatch(t *testing.T) {
	var batch codec.MessageBatch
	for i := range 20 {
		batch.Messages = append(batch.Messages, codec.SubMessage{Flag: int32(i), Body: body(i), Properties: keysOf(i)})
	}
	b, err := batch.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	var view codec.MessageBatchView
	if err := view.Parse(b); err != nil {
		t.Fatal(err)
	}
	var msgs []Message
	for _, m := range view.Messages().All() {
		msgs = append(msgs, Message{Topic: "t", QueueID: 2, Flag: m.Flag(), Body: m.Body(), Properties: m.Properties()})
	}
	opt := testOptions(vfs.NewSim(), "/store")
	s := start(t, opt)
	mustAppend(t, s, &Message{Topic: "t", QueueID: 2}, Sync)
	receipts, err := s.AppendBatch(context.Background(), msgs, Sync, nil)
	if err != nil || len(receipts) != 20 {
		t.Fatal(len(receipts), err)
	}
	whole := inner("b", 20, b)
	last := mustAppend(t, s, whole, Sync)
	waitVisible(t, s, endOf(last))
	waitIndexed(t, s)
	var out Records
	defer out.Release()
	if err := s.Get(t.Context(), Request{Topic: "t", QueueID: 2, Offset: 1}, &out); err != nil || out.Len() != 20 {
		t.Fatal(out.Len(), err)
	}
	for i := range 20 {
		r := out.At(i)
		if r.QueueOffset() != int64(i+1) || r.QueueOffset() != receipts[i].QueueOffset() || r.StoreTimestamp() != receipts[0].StoreTime() || r.Flag() != int32(i) ||
			!bytes.Equal(r.Body(), body(i)) || r.PreparedTransactionOffset() != 0 {
			t.Errorf("message %d: %v", i, r)
		}
	}
	for i := range 5 {
		found, _, err := byKey(s, Query{Topic: "t", Key: keyOf(i)})
		if err != nil || len(found) != 4 || !slices.IsSortedFunc(found, func(a, b int64) int { return int(b - a) }) {
			t.Errorf("key %s: %v, %v", keyOf(i), found, err)
		}
	}
	for at := range int64(20) {
		if err := s.Get(t.Context(), Request{Topic: "b", Offset: at}, &out); err != nil || out.Len() != 1 || out.Next != 20 || !bytes.Equal(out.At(0).Body(), b) {
			t.Fatalf("at %d: %d records, next %d, %v", at, out.Len(), out.Next, err)
		}
	}
	closeClean(t, s)
	verifyClean(t, opt)
}
