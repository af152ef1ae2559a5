package conformance

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stratalog/stratalog"
	"github.com/stratalog/stratalog/internal/clock"
)

// TestPairs has the cases in which one side writes and the other reads, and those
// in which both write the same and the files are compared.
func TestPairs(t *testing.T) {
	var cases []testCase
	for _, k := range kinds() {
		s := usual()
		if k.setup != nil {
			k.setup(&s)
		}
		if k.oursOnly == "" {
			cases = append(cases, testCase{group: "a", name: k.name, run: func(e *env) error { return javaToUs(e, s, k) }})
		}
		if k.javaOnly == "" {
			cases = append(cases, testCase{group: "b", name: k.name, run: func(e *env) error { return usToJava(e, s, k) }})
		}
		if k.javaOnly == "" && k.oursOnly == "" {
			cases = append(cases, testCase{group: "e", name: k.name, run: func(e *env) error { return sameBytes(e, s, k) }})
		}
	}
	runCases(t, cases)
}

// javaToUs: Java writes, we read all.
func javaToUs(e *env, s setup, k kind) error {
	dir := e.dir()
	all, java, err := e.javaWrites(dir, s, k.groups)
	if err != nil {
		return err
	}
	if err := holds(java, all); err != nil {
		return fmt.Errorf("java does not find its own: %w", err)
	}
	ours, err := e.weRead(s.options(dir))
	if err != nil {
		return err
	}
	if err := differs("ours", ours, java); err != nil {
		return err
	}
	if err := holds(ours, all); err != nil {
		return err
	}
	return outside(e, s.options(dir), all)
}

// outside looks up by their place the records that no queue leads to.
func outside(e *env, opt stratalog.Options, all []sent) error {
	r, err := stratalog.OpenReader(e.ctx, opt, stratalog.ReaderOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	for i, s := range all {
		if s.inQueue() {
			continue
		}
		var rec stratalog.Record
		found, err := r.GetAt(e.ctx, stratalog.Offset(s.phy), &rec)
		if err != nil || !found {
			return fmt.Errorf("message %d at %d: %v, %w", i, s.phy, found, err)
		}
		s.offset = 0 // such records take no place in a queue
		err = s.stands(rec.Bytes())
		rec.Release()
		if err != nil {
			return fmt.Errorf("message %d at %d: %w", i, s.phy, err)
		}
	}
	return nil
}

// usToJava: we write, Java loads, starts and reads all; the log is untouched by
// that, and we still read the same.
func usToJava(e *env, s setup, k kind) error {
	dir := e.dir()
	all, ours, err := e.weWrite(s.options(dir), k.groups, nil, nil)
	if err != nil {
		return err
	}
	if err := holds(ours, all); err != nil {
		return fmt.Errorf("we do not find our own: %w", err)
	}
	before, err := files(dir, "commitlog")
	if err != nil {
		return err
	}
	java, err := e.javaReads(dir, s)
	if err != nil {
		return err
	}
	after, err := files(dir, "commitlog")
	if err != nil {
		return err
	}
	for name, b := range before {
		if string(after[name]) != string(b) {
			return fmt.Errorf("java changed commitlog/%s: %s", name, firstDifference(b, after[name]))
		}
	}
	again, err := e.weRead(s.options(dir))
	if err != nil {
		return fmt.Errorf("after java: %w", err)
	}
	return errors.Join(differs("java", java, ours), holds(java, all), differs("again", again, ours))
}

// sameBytes: both write the same messages at the same store times, with and
// without the checksum over the record, and every byte of the log and of the
// queues is compared. Nothing is left out: times are made equal by giving us the
// clock of Java's receipts.
func sameBytes(e *env, s setup, k kind) error {
	with, without := s, s
	without.checksum = false
	return errors.Join(sameBytesOnce(e, with, k), func() error {
		if _, force := s.more["forceVerifyPropCRC"]; force {
			return nil // it demands the checksum
		}
		if err := sameBytesOnce(e, without, k); err != nil {
			return fmt.Errorf("without the checksum: %w", err)
		}
		return nil
	}())
}

func sameBytesOnce(e *env, s setup, k kind) error {
	javaDir, ourDir := e.dir(), e.dir()
	stamps, java, err := e.javaWrites(javaDir, s, k.groups)
	if err != nil {
		return err
	}
	wall := &stampedClock{Clock: clock.Real()}
	wall.ms.Store(stamps[0].stored)
	opt := s.options(ourDir)
	opt.Clock = wall
	_, ours, err := e.weWrite(opt, k.groups, wall, stamps)
	if err != nil {
		return err
	}
	return errors.Join(differs("ours", ours, java), sameFiles("commitlog", ourDir, javaDir), sameFiles("consumequeue", ourDir, javaDir))
}
