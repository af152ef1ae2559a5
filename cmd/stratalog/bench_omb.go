package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stratalog/stratalog/perf"
	"github.com/stratalog/stratalog/perf/load"
	"github.com/stratalog/stratalog/perf/omb"
)

// asFastAsPossible is the rate from which on a file means: as fast as it goes. The
// benchmark's own files say so with 10,000,000 a second.
const asFastAsPossible = 5_000_000

// applyWorkload lays a workload file under the flags: it sets what no flag was
// given for, and returns what counts as given then, and what a reader of the
// figures must know.
func applyWorkload(w *omb.Workload, flags *loadFlags, cfg *perf.TailConfig, given func(string) bool) (func(string) bool, []string, error) {
	refused := w.Unsupported()
	if w.TestDurationMinutes == 0 && (given("duration") || given("records")) {
		refused = refused[:len(refused)-1] // it is the last, and answered by a flag
	}
	if len(refused) > 0 {
		return nil, nil, usage("the workload cannot be run as it stands: %s", strings.Join(refused, " "))
	}
	l, s := flags, &flags.cfg.Load
	notes := []string{fmt.Sprintf("workload %q of an OpenMessaging Benchmark file", w.Name)}
	from := map[string]bool{}
	set := func(flag string, do func()) {
		if !given(flag) {
			do()
			from[flag] = true
		}
	}
	set("topics", func() { l.cfg.Topics = w.Topics })
	set("queues", func() { l.cfg.Queues = w.QueuesPerTopic() })
	set("producers", func() { s.Producers = w.Producers() })
	set("rate", func() { s.Rate = float64(w.ProducerRate) })
	if !given("rate") && (w.FindsRate() || w.ProducerRate >= asFastAsPossible) {
		s.Rate = 0
		notes = append(notes, fmt.Sprintf("producerRate %d asks for the highest rate; this is a closed loop, which finds it by itself", w.ProducerRate))
	}
	set("followers", func() { cfg.Followers = w.SubscriptionsPerTopic })
	if w.ConsumerPerSubscription > 1 {
		notes = append(notes, fmt.Sprintf("one follower reads what the %d consumers of a subscription would share", w.ConsumerPerSubscription))
	}
	if !given("records") {
		set("duration", func() { s.Duration = w.TestDuration() })
	}
	if !given("warmup") {
		set("warmup-duration", func() { s.WarmupDuration = w.WarmupDuration() })
	}
	if given("size") || given("corpus") {
		return func(flag string) bool { return given(flag) || from[flag] }, notes, nil
	}
	payload, err := w.Payload()
	if err != nil {
		return nil, nil, err
	}
	l.size = strconv.Itoa(w.MessageSize)
	l.bodies = func(seed uint64) *load.Bodies {
		switch {
		case payload != nil:
			return load.NewPayload(payload)
		case w.UseRandomizedPayloads:
			return load.NewBodies(seed, load.FixedSize(w.MessageSize)).ZeroFrom(w.RandomBytes())
		}
		return load.NewBodies(seed, load.FixedSize(w.MessageSize))
	}
	return func(flag string) bool { return given(flag) || from[flag] }, notes, nil
}
