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
		{group: "c", name: "alternate-java-as-it-comes", run: func(e *env) error { return alternate(e, turns{javaPlain: true}) }},
		{group: "c", name: "alternate-mmap-no-checksum", run: func(e *env) error { return alternate(e, turns{plain: true}) }},
	})
}

// turns are the variations of alternating.
type turns struct {
	versions  bool // every second turn of Java is the other version's
	expire    bool // Java removes old segments
	noSidecar bool // our own files are removed before each turn of ours
	plain     bool // the other write path, no checksum over the record
	javaPlain bool // only Java puts no checksum over the record, which is its default
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

// ownPeers are processes of one case. A Java store that was shut down keeps its
// files open until they are collected, so that in a long case the processes are
// replaced now and then.
type ownPeers struct {
	e       *env
	running map[string]*javapeer.Process
	turns   int
}

// process returns that of the case's version, or of the other one.
func (o *ownPeers) process(other bool) (*javapeer.Process, error) {
	version := o.e.version
	if other {
		version = javapeer.Versions[0]
		if version == o.e.version {
			version = javapeer.Versions[1]
		}
	}
	if modeCounts().alternations <= 10 {
		return peer(o.e.ctx, version) // few turns: the shared one does
	}
	if o.turns++; o.turns%10 == 0 {
		if err := o.end(); err != nil {
			return nil, err
		}
	}
	if p := o.running[version]; p != nil {
		return p, nil
	}
	p, err := javapeer.Start(o.e.ctx, root, version, o.e.t.TempDir())
	if err != nil {
		return nil, err
	}
	if o.running == nil {
		o.running = map[string]*javapeer.Process{}
	}
	o.running[version] = p
	return p, nil
}

// end ends the processes, whose stores were all shut down.
func (o *ownPeers) end() error {
	var err error
	for _, p := range o.running {
		err = errors.Join(err, p.Kill())
	}
	o.running = nil
	return err
}

// alternate has Java and us write in turn. At every turn each must see exactly
// what the other saw at its end, and go on with the offsets from there.
func alternate(e *env, how turns) error {
	s := usual()
	if how.plain {
		s.checksum, s.path = false, stratalog.WriteMmap
	}
	theirs := s
	theirs.checksum = s.checksum && !how.javaPlain
	dir := e.dir()
	var all []sent
	var last snapshot
	first := int64(0)
	rounds := modeCounts().alternations
	own := &ownPeers{e: e}
	defer own.end()
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
		p, err := own.process(how.versions && round%2 == 1)
		if err != nil {
			return err
		}
		store, err := e.openJava(p, dir, theirs)
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
