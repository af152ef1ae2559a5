package commitlog

import (
	"testing"
)

// A suite that cannot fail proves nothing. Each canary is a log with one
// protection left out, and the test demands that the oracle notices.

// caughtByPowerCut runs the power-cut oracle on a broken log.
func caughtByPowerCut(t *testing.T, broken breakage) {
	t.Helper()
	caught(t, &explorer{steps: 40, deep: 60, sample: 3, broken: broken, point: -1, state: -1})
}

func caught(t *testing.T, e *explorer) {
	t.Helper()
	for seed := uint64(1); seed <= 16; seed++ {
		if err := e.explore(seed); err != nil {
			t.Logf("caught at seed %d after %d states: %v", seed, e.states.Load()+e.kills.Load(), err)
			return
		}
	}
	t.Fatalf("not caught in %d states", e.states.Load()+e.kills.Load())
}

func TestCanaryAckBeforeSync(t *testing.T) { caughtByPowerCut(t, brokenAckBeforeSync) }

func TestCanaryNoDirSync(t *testing.T) { caughtByPowerCut(t, brokenNoDirSync) }

// An ack before the write is found by the death of the process.
func TestCanaryAckBeforeWrite(t *testing.T) {
	caught(t, &explorer{steps: 40, killsOnly: true, broken: brokenAckBeforeWrite, point: -1, state: -1})
}

// A sync that is retried is found by a failed sync that drops the pages.
func TestCanaryRetrySync(t *testing.T) {
	if err := dropPagesOracle(brokenNone); err != nil {
		t.Fatalf("a whole log: %v", err)
	}
	err := dropPagesOracle(brokenRetrySync)
	if err == nil {
		t.Fatal("not caught")
	}
	t.Logf("caught: %v", err)
}

// A cut below the bound is found by damage below the bound.
func TestCanaryCutBelowBound(t *testing.T) {
	if err := damageBelowOracle(brokenNone); err != nil {
		t.Fatalf("a whole log: %v", err)
	}
	err := damageBelowOracle(brokenCutBelowBound)
	if err == nil {
		t.Fatal("not caught")
	}
	t.Logf("caught: %v", err)
}
