package stratalog

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/cq"
	"github.com/stratalog/stratalog/internal/vfs"
)

func TestParseDelayLevels(t *testing.T) {
	got, err := ParseDelayLevels("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
	if err != nil || !slices.Equal(got, cq.DefaultDelayLevels()) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParseDelayLevels(" 2d  0s"); err != nil || !slices.Equal(got, []time.Duration{48 * time.Hour, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"s", "1", "1x", "-1s", "1.5s", "99999999999s"} {
		if _, err := ParseDelayLevels(text); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestDelayed: a delayed message waits in its level's queue, its entry says until
// when, and its properties where it goes.
func TestDelayed(t *testing.T) {
	opt := testOptions(vfs.NewSim(), "/store")
	opt.DelayLevels = []time.Duration{time.Second, time.Hour}
	s := start(t, opt)
	m := Message{Topic: "t", QueueID: 7, Properties: codec.AppendProperty(tags("x"), codec.PropertyDelay, "9")}
	for level, want := range map[int]int{0: 1, 1: 1, 2: 2, 3: 2} {
		d := Delayed(m, level, len(opt.DelayLevels))
		r := mustAppend(t, s, &d, Sync)
		waitVisible(t, s, endOf(r))
		var unit [1]codec.QueueUnit
		n, err := s.queues.Units(codec.ScheduleTopic, int32(want-1), r.QueueOffset(), unit[:])
		if due := r.StoreTime() + opt.DelayLevels[want-1].Milliseconds(); n != 1 || err != nil || unit[0].TagsCode != due {
			t.Errorf("level %d: %d, %v, due at %d, want %d", level, n, err, unit[0].TagsCode, due)
		}
		var rec Record
		place, _ := r.Range()
		if _, err := s.GetAt(t.Context(), place.Start, &rec); err != nil {
			t.Fatal(err)
		}
		if topic, queue, ok := RealQueue(&rec); !ok || topic != "t" || queue != 7 {
			t.Errorf("it goes to %s/%d, %v", topic, queue, ok)
		}
		rec.Release()
	}
	// Of a transaction too; without both properties, or with no number, it waits for
	// nothing.
	for real, want := range map[string]string{"": "", "REAL_TOPIC\x01u\x02": "", "REAL_QID\x013\x02": "", "REAL_TOPIC\x01u\x02REAL_QID\x01x\x02": "",
		"REAL_TOPIC\x01u\x02REAL_QID\x012147483648\x02": "", "REAL_TOPIC\x01u\x02REAL_QID\x013\x02": "u/3"} {
		var rec Record
		half := Message{Topic: "half", SysFlag: int32(codec.SysFlagTransactionPrepared), Properties: append(tags("x"), real...)}
		place, _ := mustAppend(t, s, &half, Sync).Range()
		if _, err := s.GetAt(t.Context(), place.Start, &rec); err != nil {
			t.Fatal(err)
		}
		got := ""
		if topic, queue, ok := RealQueue(&rec); ok {
			got = fmt.Sprintf("%s/%d", topic, queue)
		}
		if got != want {
			t.Errorf("%q: it goes to %q, want %q", real, got, want)
		}
		rec.Release()
	}
	closeClean(t, s)
	verifyClean(t, opt)
}
