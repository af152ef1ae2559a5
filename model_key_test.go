package stratalog

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/index"
	"github.com/stratalog/stratalog/internal/vfs"
)

// keyRecord is a record of the key model.
type keyRecord struct {
	logRecord
	topic, unique, keys string
	rolledBack          bool
}

// keyLog is a log in memory with its key index.
type keyLog struct {
	modelLog
	recs []keyRecord
	idx  *index.Store
}

func newKeyLog(t *testing.T, seed uint64) *keyLog {
	t.Helper()
	l := &keyLog{modelLog: modelLog{rng: rand.New(rand.NewPCG(seed, 4)), epochs: []contract.EpochStart{{Epoch: 1}}}}
	var err error
	l.idx, err = index.Open(vfs.NewSim(), "/i", index.Options{Slots: 1 + l.rng.IntN(5), Entries: 3 + l.rng.IntN(10), Tags: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.idx.Close() })
	pick := func(words ...string) string { return words[l.rng.IntN(len(words))] }
	phy, ms := int64(100), int64(1_700_000_000_000)
	for range l.rng.IntN(20) {
		ms += []int64{0, 0, 1, 999, 1000, 4000}[l.rng.IntN(6)]
		r := keyRecord{topic: pick("t", "t", "u"), unique: pick("", "", "Aa", "id"), keys: pick("", "Aa", "BB", "Aa BB", "Aa Aa", " x  BB ")}
		r.phy, r.time, r.tag, r.rolledBack = phy, ms, pick("", "Aa", "BB"), l.rng.IntN(8) == 0
		m := codec.Message{Magic: codec.MessageMagicV1, PhysicalOffset: phy, StoreTimestamp: ms, Topic: []byte(r.topic),
			BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Body: make([]byte, l.rng.IntN(60))}
		for name, value := range map[string]string{codec.PropertyUniqueKey: r.unique, codec.PropertyKeys: r.keys, codec.PropertyTags: r.tag} {
			if value != "" {
				m.Properties = codec.AppendProperty(m.Properties, name, value)
			}
		}
		if r.rolledBack {
			m.SysFlag = codec.SysFlagTransactionRollback
		}
		var v codec.MessageView
		if r.raw, err = m.Append(nil); err == nil {
			err = v.Parse(r.raw)
		}
		if r.size = len(r.raw); err == nil {
			err = l.idx.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(phy), Length: int64(r.size)}, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.all, l.recs = append(l.all, r.logRecord), append(l.recs, r)
		phy += int64(r.size) + l.rng.Int64N(2)*50
	}
	if err := l.idx.Commit(); err != nil {
		t.Fatal(err)
	}
	if l.rng.IntN(4) == 0 {
		l.takeAway(l.rng.IntN(len(l.all) + 1))
	}
	return l
}

// query is the model of QueryKey: what matches, newest first.
func (l *keyLog) query(q Query, been reached) (found []keyRecord) {
	for _, r := range slices.Backward(l.recs) {
		has := slices.Contains(append(strings.Fields(r.keys), r.unique), q.Key)
		if q.Tag {
			has = r.tag == q.Key
		}
		at := time.UnixMilli(r.time)
		early, late := !q.From.IsZero() && at.Before(q.From), !q.To.IsZero() && at.After(q.To)
		been.at("of another topic", has && r.topic != q.Topic)
		been.at("a key of equal hash", !has && slices.Contains(strings.Fields(r.keys), map[string]string{"Aa": "BB", "BB": "Aa"}[q.Key]))
		been.at("rolled back", has && r.rolledBack)
		if !has || r.topic != q.Topic || r.rolledBack {
			continue
		}
		been.at("retired", r.phy < l.min)
		been.at("early within a second", early && q.From.Sub(at) < time.Second)
		been.at("late within a second", late && at.Sub(q.To) < time.Second)
		been.at("at an edge of the window", at.Equal(q.From) || at.Equal(q.To))
		been.at("twice the same key", strings.Count(r.keys, q.Key) > 1 || r.unique == q.Key && strings.Contains(r.keys, q.Key))
		if r.phy >= l.min && !early && !late {
			found = append(found, r)
		}
	}
	return found
}

// page checks one answer to q, of which the rest of the model's is want, and
// returns what of that is left.
func (l *keyLog) page(t *testing.T, seed uint64, q Query, out *Matches, want []keyRecord, been reached) []keyRecord {
	t.Helper()
	size, n := 0, 0
	for ; n < len(want) && n < q.MaxCount; n++ {
		if n > 0 && q.MaxBytes > 0 && size+want[n].size > q.MaxBytes {
			been.at("one byte too many", size+want[n].size == q.MaxBytes+1)
			break
		}
		size += want[n].size
	}
	been.at("bytes to the last one", size == q.MaxBytes && n > 1)
	been.at("one larger than the bytes", q.MaxBytes > 0 && size > q.MaxBytes)
	been.at("the count ends it", n == q.MaxCount && n < len(want))
	status := contract.GetNoMatchedMessage
	if n > 0 {
		status = contract.GetFound
	}
	been.at(status.String(), true)
	same := out.Len() == n && out.Status == status && (out.More || n == len(want)) && out.Start == l.MinOffset() && out.Boundary == l.Confirmed()
	for i := 0; same && i < n; i++ {
		same = slices.Equal(out.At(i).Bytes(), want[i].raw)
	}
	if !same {
		t.Fatalf("seed %d: %+v over %s: %d records, %v, more %v; the model says %d of %d", seed, q, &l.modelLog, out.Len(), out.Status, out.More, n, len(want))
	}
	return want[n:]
}

// TestKeyModel holds QueryKey against the model: by key and by tag, with a window
// and with caps, page by page.
func TestKeyModel(t *testing.T) {
	been := reached{}
	var out Matches
	for seed := range uint64(logsToTry()) {
		l := newKeyLog(t, seed)
		been.at("an empty log", len(l.recs) == 0)
		been.at("several files", len(l.idx.Files()) > 2)
		for range 3 {
			q := Query{Topic: "t", Key: []string{"Aa", "BB", "x", "id"}[l.rng.IntN(4)], MaxCount: 1 + l.rng.IntN(6), Tag: l.rng.IntN(4) == 0}
			edge := func() time.Time {
				if len(l.recs) == 0 || l.rng.IntN(2) == 0 {
					return time.Time{}
				}
				ms := l.recs[l.rng.IntN(len(l.recs))].time
				return time.UnixMilli(ms + l.rng.Int64N(3) - 1).Add([]time.Duration{0, 0, 1}[l.rng.IntN(3)])
			}
			q.From, q.To = edge(), edge()
			want := l.query(q, been)
			if l.rng.IntN(2) == 0 {
				for _, r := range want[:l.rng.IntN(len(want)+1)] {
					q.MaxBytes += r.size
				}
				q.MaxBytes = max(0, q.MaxBytes-l.rng.IntN(2))
			}
			g := getter{log: l, index: l.idx}
			for more := true; more; q.After, more = out.Next, out.More {
				if err := g.query(context.Background(), q, &out, l.Confirmed()); err != nil {
					t.Fatalf("seed %d: %+v over %s: %v", seed, q, &l.modelLog, err)
				}
				want = l.page(t, seed, q, &out, want, been)
			}
		}
	}
	out.Release()
	been.all(t, contract.GetFound.String(), contract.GetNoMatchedMessage.String(), "an empty log", "several files", "of another topic", "a key of equal hash",
		"rolled back", "retired", "early within a second", "late within a second", "at an edge of the window", "twice the same key",
		"one byte too many", "bytes to the last one", "one larger than the bytes", "the count ends it")
}
