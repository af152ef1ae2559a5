package stratalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stratalog/stratalog/contract"
)

// A reader that looked before the log was cut and grew anew takes nothing for
// damage: it says that it is stale, and answers once it is refreshed.
func TestReaderIsStale(t *testing.T) {
	ctx := context.Background()
	stale := 0
	for keep := range 60 {
		fs, dir := besideFS(t)
		k := newKeyedOn(t, fs, dir)
		k.put(t, 60)
		r, err := OpenReader(ctx, k.opt, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		old := append([]int64(nil), k.starts...)
		if err := k.s.TruncateTo(ctx, Offset(k.starts[keep])); err != nil {
			t.Fatal(err)
		}
		k.starts, k.times = k.starts[:keep], k.times[:keep]
		for range keep % 7 {
			k.starts, k.times = append(k.starts, 0), append(k.times, k.clock.Now()) // other keys than before
		}
		k.put(t, keep%11)
		var found Matches
		var out Records
		var rec Record
		ask := func(damage func(error)) {
			for _, key := range []string{"x", "k0", "k1", "k2", "k3", "k4"} {
				damage(r.QueryKey(ctx, Query{Topic: "t", Key: key, MaxCount: 100}, &found))
			}
			for at := range int64(60) {
				damage(r.Get(ctx, Request{Topic: "t", Offset: at}, &out))
				_, err := r.GetAt(ctx, Offset(old[at]), &rec)
				if err == nil || !errors.Is(err, contract.ErrCorrupt) {
					damage(err) // a place in the middle of a new record is no damage
				}
			}
			_, err := r.OffsetByTime(ctx, "t", 0, time.Now(), UpperBound)
			damage(err)
		}
		ask(func(err error) {
			if errors.Is(err, contract.ErrStale) {
				stale++
			} else if err != nil {
				t.Errorf("%d kept: %v", keep, err)
			}
		})
		if err := r.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		ask(func(err error) {
			if err != nil {
				t.Errorf("%d kept, refreshed: %v", keep, err)
			}
		})
		found.Release()
		out.Release()
		rec.Release()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		closeClean(t, k.s)
	}
	if stale == 0 {
		t.Error("no reader was stale")
	}
}
