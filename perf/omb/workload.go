package omb

import (
	"fmt"
	"math"
	"time"
)

// KeyDistributor says which keys messages have.
type KeyDistributor string

const (
	// NoKey: messages have no key.
	NoKey KeyDistributor = "NO_KEY"
	// KeyRoundRobin: 10000 keys in turn, for each thread of the benchmark.
	KeyRoundRobin KeyDistributor = "KEY_ROUND_ROBIN"
	// RandomNano: one of 10000 keys, which the clock chooses.
	RandomNano KeyDistributor = "RANDOM_NANO"
)

// Workload is a workload file. Counts are at most 2^31-1, as in the benchmark,
// and so are the products that the methods return.
type Workload struct {
	// Name is the title of the results, for people.
	Name string

	// Topics is how many topics there are, at least 1.
	Topics int
	// PartitionsPerTopic is how many queues each topic has, at least 1.
	PartitionsPerTopic int
	// KeyDistributor makes the keys; where there are keys they choose the
	// partition.
	KeyDistributor KeyDistributor

	// MessageSize is the length of each body in bytes.
	MessageSize int
	// UseRandomizedPayloads makes bodies of random bytes, then zeros; the
	// benchmark then ignores PayloadFile. If it is false and there is no
	// PayloadFile, the benchmark cannot run the workload; to us it says nothing
	// about what bodies hold.
	UseRandomizedPayloads bool
	// RandomBytesRatio is which part of a randomized body is random, 0..1.
	RandomBytesRatio float64
	// RandomizedPayloadPoolSize is how many randomized bodies are made before
	// the run; each message has one of them, by chance.
	RandomizedPayloadPoolSize int
	// PayloadFile names the file whose content is the body of every message.
	PayloadFile string

	// SubscriptionsPerTopic is how many groups of consumers read each topic,
	// each of them all messages.
	SubscriptionsPerTopic int
	// ProducersPerTopic is how many producers each topic has, at least 1.
	ProducersPerTopic int
	// ConsumerPerSubscription is how many consumers share the messages of a
	// topic in each subscription.
	ConsumerPerSubscription int

	// ProducerRate is in messages a second, all producers of all topics
	// together; 0 means to find the highest rate that can be sustained.
	ProducerRate int

	// ConsumerBacklogSizeGB, if not 0, stops the consumers after the warm-up
	// until so much is stored for them, all subscriptions together, then has
	// them drain it; in 2^30 bytes.
	ConsumerBacklogSizeGB int64
	// BacklogDrainRatio is which part of the backlog must be drained before it
	// counts as drained, 0..1.
	BacklogDrainRatio float64

	// TestDurationMinutes is how long the run is measured; 0 means without an
	// end. With a backlog it begins anew when that is drained. The benchmark
	// takes whole minutes only.
	TestDurationMinutes float64
	// WarmupDurationMinutes is how long the same load runs before, unmeasured;
	// 0 means not at all. The benchmark takes whole minutes only.
	WarmupDurationMinutes float64

	file  string
	lines map[string]int // where each field stands
}

// defaults returns a workload of which nothing is said.
func defaults(name string) *Workload {
	return &Workload{KeyDistributor: NoKey, BacklogDrainRatio: 1, WarmupDurationMinutes: 1,
		file: name, lines: map[string]int{}}
}

// Producers returns how many producers there are, all topics together.
func (w *Workload) Producers() int { return w.Topics * w.ProducersPerTopic }

// QueuesPerTopic returns how many queues each topic has.
func (w *Workload) QueuesPerTopic() int { return w.PartitionsPerTopic }

// Queues returns how many queues there are, all topics together.
func (w *Workload) Queues() int { return w.Topics * w.PartitionsPerTopic }

// Consumers returns how many consumers there are, all topics and subscriptions
// together.
func (w *Workload) Consumers() int {
	return w.Topics * w.SubscriptionsPerTopic * w.ConsumerPerSubscription
}

// FindsRate reports whether the run is to find the highest rate that can be
// sustained.
func (w *Workload) FindsRate() bool { return w.ProducerRate == 0 }

// RandomBytes returns how many bytes at the start of a randomized body are
// random; the others are zero. It is 0 if bodies are not randomized.
func (w *Workload) RandomBytes() int {
	if !w.UseRandomizedPayloads {
		return 0
	}
	return int(float64(w.MessageSize) * w.RandomBytesRatio)
}

// TestDuration returns how long the run is measured; 0 means without an end.
func (w *Workload) TestDuration() time.Duration { return minutes(w.TestDurationMinutes) }

// WarmupDuration returns how long the load runs before it is measured.
func (w *Workload) WarmupDuration() time.Duration { return minutes(w.WarmupDurationMinutes) }

// BacklogSize returns the backlog that is asked for in bytes.
func (w *Workload) BacklogSize() int64 { return w.ConsumerBacklogSizeGB << 30 }

func minutes(m float64) time.Duration {
	return time.Duration(math.Round(m * float64(time.Minute)))
}

// Unsupported returns a sentence for each field that asks for something that
// has no meaning in a store without brokers, or that a load generator should not
// do unasked. A caller that runs the workload all the same measures another one.
func (w *Workload) Unsupported() []string {
	var all []string
	if w.KeyDistributor != NoKey {
		all = append(all, fmt.Sprintf("keyDistributor is %s: a broker's client takes the partition from the key, "+
			"but the store has no keys that choose a queue.", w.KeyDistributor))
	}
	if w.ConsumerBacklogSizeGB > 0 {
		all = append(all, fmt.Sprintf("consumerBacklogSizeGB is %d: runs that pile up a backlog and measure how it is drained "+
			"(to backlogDrainRatio %v) are not supported.", w.ConsumerBacklogSizeGB, w.BacklogDrainRatio))
	}
	if w.TestDurationMinutes == 0 {
		all = append(all, "testDurationMinutes is 0: the run would have no end, and fill the disk.")
	}
	return all
}
