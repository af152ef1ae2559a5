package commitlog

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stratalog/stratalog/contract"
	"github.com/stratalog/stratalog/internal/vfs"
)

// dropPagesOracle is the oracle for a failed sync that drops the pages: what
// waited is not acknowledged, nothing is until Recover, and then everything
// acknowledged survives a power cut.
func dropPagesOracle(broken breakage) error {
	for _, path := range []WritePath{WritePwrite, WriteMmap} {
		if err := dropPagesOn(path, broken); err != nil {
			return fmt.Errorf("%v: %w", path, err)
		}
	}
	return nil
}

func dropPagesOn(path WritePath, broken breakage) error {
	ctx := context.Background()
	sim := vfs.NewSim()
	opt := simOptions(sim)
	opt.WritePath, opt.broken = path, broken
	log, err := openStill(opt, nil)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close(false) }()
	h := &history{}
	send := func(i int) error {
		m := message("T", i)
		h.sent = append(h.sent, sent{topic: m.Topic, queue: m.QueueID, body: m.Body, start: -1})
		_, err := log.Append(ctx, m, contract.DurabilitySync)
		if err == nil {
			h.sync = len(h.sent)
		}
		return err
	}
	crash := func() error {
		for _, choose := range []vfs.Chooser{vfs.AllOld(), vfs.AllNew()} {
			o := opt
			o.FS, o.broken = sim.Crash(choose), brokenNone
			again, err := openStill(o, nil)
			if err != nil {
				return err
			}
			_, err = h.check(again, h.sync)
			if err = errors.Join(err, again.Close(false)); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range 5 {
		if err := send(i); err != nil {
			return err
		}
	}
	sim.FailSync("commitlog/*", 1, syscall.EIO, true)
	failed := send(5)
	if err := crash(); err != nil {
		return fmt.Errorf("after the failed sync: %w", err)
	}
	if failed == nil {
		return errors.New("the append whose sync failed was acknowledged")
	}
	if log.Fenced() == nil || !errors.Is(failed, contract.ErrFenced) || !errors.Is(failed, syscall.EIO) {
		return fmt.Errorf("not fenced: %w", failed)
	}
	// A second one, whose sync would succeed, is refused.
	if _, err := log.Append(ctx, message("T", 6), contract.DurabilitySync); !errors.Is(err, contract.ErrFenced) {
		return fmt.Errorf("an append to a fenced log: %w", err)
	}
	if _, err := log.Recover(ctx, nil); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	if n := log.Appended(); n != log.Durable() {
		return fmt.Errorf("after Recover: appended %d, durable %d", n, log.Durable())
	}
	n, err := h.check(log, h.sync)
	if err != nil {
		return fmt.Errorf("after Recover: %w", err)
	}
	h.sent = h.sent[:n]
	h.sync = n // Recover made them durable
	for i := 6; i < 10; i++ {
		if err := send(i); err != nil {
			return fmt.Errorf("append after Recover: %w", err)
		}
	}
	return crash()
}

func TestSyncFailsAndDropsPages(t *testing.T) {
	if err := dropPagesOracle(brokenNone); err != nil {
		t.Fatal(err)
	}
}
