package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/conformance/javapeer"
)

// TestTurns has the cases in which both sides write one directory in turn.
func TestTurns(t *testing.T) {
	runCases(t, []testCase{
		{group: "c", name: "alternate", run: func(e *env) error { return alternate(e, turns{}) }},
		{group: "c", name: "alternate-versions", run: func(e *env) error { return alternate(e, turns{versions: true}) }},
		{group: "c", name: "alternate-expiring", run: func(e *env) error { return alternate(e, turns{expire: true}) }},
		{group: "c", name: "alternate-without-sidecar", run: func(e *env) error { return alternate(e, turns{noSidecar: true}) }},
		{group: "c", name: "alternate-mmap-no-checksum", run: func(e *env) error { return alternate(e, turns{plain: true}) }},
	})
}

// turns are the variations of alternating.
type turns struct {
	versions  bool // every second turn of Java is the other version's
	expire    bool // Java removes old segments
	noSidecar bool // our own files are removed before each turn of ours
	plain     bool // the other write path, no checksum over the record
}

// mixed makes the messages of one turn: every kind of record that a log holds.
func mixed(turn int) [][]stratalog.Message {
	groups := several(60, func(i int, m *stratalog.Message) {
		n := turn*1000 + i
		m.Topic, m.QueueID = []string{"turns", "注文", "%RETRY%g"}[i%3], int32(i%4)
		m.Body = body(n, (n*131)%3000)
		m.Properties = props("UNIQ_KEY", fmt.Sprintf("u%d", n), "KEYS", fmt.Sprintf("k%d", n%7), "TAGS", fmt.Sprintf("t%d", n%3))
		switch i % 10 {
		case 7:
			m.BornHost = addr("[2001:db8::7]:7")
		case 8:
			m.SysFlag = int32(codec.SysFlagTransactionPrepared)
		case 9:
			m.SysFlag = int32(codec.SysFlagTransactionCommit)
		}
	})
	for _, b := range batches(2, 9, 300) {
		for i := range b {
			b[i].BornTimestamp = born + int64(turn)
		}
		groups = append(groups, b)
	}
	return groups
}

// alternate has Java and us write in turn. At every turn each must see exactly
// what the other saw at its end, and go on with the offsets from there.
func alternate(e *env, how turns) error {
	s := usual()
	if how.plain {
		s.checksum, s.path = false, stratalog.WriteMmap
	}
	dir := e.dir()
	var all []sent
	var last snapshot
	first := int64(0)
	rounds := modeCounts().alternations
	check := func(what string, before, seen snapshot) error {
		var live []sent
		for _, m := range all {
			if m.phy >= first {
				live = append(live, m)
			}
		}
		return errors.Join(differs(what, before, last), holds(seen, live))
	}
	for round := range rounds {
		p := e.java
		if how.versions && round%2 == 1 {
			other := javapeer.Versions[0]
			if other == e.version {
				other = javapeer.Versions[1]
			}
			var err error
			if p, err = peer(e.ctx, other); err != nil {
				return err
			}
		}
		store, err := e.openJava(p, dir, s)
		if err != nil {
			return fmt.Errorf("turn %d: %w", round, err)
		}
		var before, seen snapshot
		err = func() error {
			if before, err = javaSees(e.ctx, store); err != nil {
				return err
			}
			more, err := e.javaPuts(store, mixed(2*round))
			if err != nil {
				return err
			}
			all = append(all, more...)
			if err := store.Wait(e.ctx); err != nil {
				return err
			}
			if how.expire && round%2 == 1 {
				var deleted int
				if deleted, first, err = store.DeleteExpired(e.ctx, 1); err != nil || deleted != 1 {
					return fmt.Errorf("expired %d: %w", deleted, err)
				}
			}
			seen, err = javaSees(e.ctx, store)
			return err
		}()
		if err = errors.Join(err, store.Shutdown(e.ctx)); err != nil {
			return fmt.Errorf("turn %d, java: %w", round, err)
		}
		if last != nil {
			if err := check("java", before, seen); err != nil {
				return fmt.Errorf("turn %d: %w", round, err)
			}
		}
		last = seen

		if how.noSidecar {
			if err := os.RemoveAll(filepath.Join(dir, "stratalog")); err != nil {
				return err
			}
		}
		ours, err := openOurs(e.ctx, s.options(dir))
		if err != nil {
			return fmt.Errorf("turn %d: %w", round, err)
		}
		err = func() error {
			if before, err = oursSees(e.ctx, ours); err != nil {
				return err
			}
			more, err := weAppend(e.ctx, ours, mixed(2*round+1), nil, nil)
			if err != nil {
				return err
			}
			all = append(all, more...)
			seen, err = oursSees(e.ctx, ours)
			return err
		}()
		if err = errors.Join(err, closeOurs(e.ctx, ours), e.verifiedDir(s.options(dir))); err != nil {
			return fmt.Errorf("turn %d, ours: %w", round, err)
		}
		if err := check("ours", before, seen); err != nil {
			return fmt.Errorf("turn %d: %w", round, err)
		}
		last = seen
	}
	e.note = fmt.Sprintf("%d turns each, %d messages, 0 differences", rounds, len(all))
	return nil
}
