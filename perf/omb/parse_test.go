package omb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// least is what a file must say.
const least = "topics: 1\npartitionsPerTopic: 1\nproducersPerTopic: 1\n"

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       Workload
	}{
		{"defaults", least, Workload{Topics: 1, PartitionsPerTopic: 1, ProducersPerTopic: 1,
			KeyDistributor: NoKey, BacklogDrainRatio: 1, WarmupDurationMinutes: 1}},
		{"a body from a file, a fixed rate", `# A comment, then the fields of one topic.

name: ten queues / 100 bytes

topics: 1
partitionsPerTopic: 10
keyDistributor: "NO_KEY"
messageSize: 100
payloadFile: "bodies/100.data"
subscriptionsPerTopic: 1
consumerPerSubscription: 2
producersPerTopic: 3
producerRate: 50000
consumerBacklogSizeGB: 0
testDurationMinutes: 15
`, Workload{Name: "ten queues / 100 bytes", Topics: 1, PartitionsPerTopic: 10, KeyDistributor: NoKey, MessageSize: 100,
			PayloadFile: "bodies/100.data", SubscriptionsPerTopic: 1, ConsumerPerSubscription: 2, ProducersPerTopic: 3,
			ProducerRate: 50000, BacklogDrainRatio: 1, TestDurationMinutes: 15, WarmupDurationMinutes: 1}},
		{"randomized bodies, the highest rate", `---
name: 'many topics'
topics: 100
partitionsPerTopic: 1
messageSize: 65536
useRandomizedPayloads: true
randomBytesRatio: 0.5
randomizedPayloadPoolSize: 1_000
subscriptionsPerTopic: 2
consumerPerSubscription: 4
producersPerTopic: 4
producerRate: 0   # as fast as it goes
testDurationMinutes: 5
warmupDurationMinutes: 0
...
`, Workload{Name: "many topics", Topics: 100, PartitionsPerTopic: 1, KeyDistributor: NoKey, MessageSize: 65536,
			UseRandomizedPayloads: true, RandomBytesRatio: .5, RandomizedPayloadPoolSize: 1000, SubscriptionsPerTopic: 2,
			ConsumerPerSubscription: 4, ProducersPerTopic: 4, BacklogDrainRatio: 1, TestDurationMinutes: 5}},
		{"a backlog, keys, fractions", least + `keyDistributor: KEY_ROUND_ROBIN
messageSize: 1024
subscriptionsPerTopic: 1
consumerPerSubscription: 1
producerRate: 100000
consumerBacklogSizeGB: 100
backlogDrainRatio: .99
testDurationMinutes: 0.5
warmupDurationMinutes: 2.5e-1
`, Workload{Topics: 1, PartitionsPerTopic: 1, KeyDistributor: KeyRoundRobin, MessageSize: 1024, SubscriptionsPerTopic: 1,
			ProducersPerTopic: 1, ConsumerPerSubscription: 1, ProducerRate: 100000, ConsumerBacklogSizeGB: 100,
			BacklogDrainRatio: .99, TestDurationMinutes: .5, WarmupDurationMinutes: .25}},
		{"one line, other spellings", `{"topics": +2, partitionsPerTopic: &n 3, producersPerTopic: *n, name: 2026, payloadFile: ~,` +
			` useRandomizedPayloads: False, keyDistributor: RANDOM_NANO}`,
			Workload{Name: "2026", Topics: 2, PartitionsPerTopic: 3, ProducersPerTopic: 3, KeyDistributor: RandomNano,
				BacklogDrainRatio: 1, WarmupDurationMinutes: 1}},
		{"largest numbers", "topics: 2147483647\npartitionsPerTopic: 1\nproducersPerTopic: 1\nproducerRate: 2147483647\n" +
			"consumerBacklogSizeGB: 8589934591\ntestDurationMinutes: 153722867\nwarmupDurationMinutes: 0.0\n",
			Workload{Topics: 2147483647, PartitionsPerTopic: 1, ProducersPerTopic: 1, ProducerRate: 2147483647, KeyDistributor: NoKey,
				ConsumerBacklogSizeGB: 8589934591, BacklogDrainRatio: 1, TestDurationMinutes: 153722867}},
		{"a byte order mark, CRLF", "\ufeff" + strings.ReplaceAll(least, "\n", "\r\n"),
			Workload{Topics: 1, PartitionsPerTopic: 1, ProducersPerTopic: 1, KeyDistributor: NoKey,
				BacklogDrainRatio: 1, WarmupDurationMinutes: 1}},
	} {
		got, err := Parse("w.yaml", []byte(c.data))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got.file, got.lines = "", nil
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, *got, c.want)
		}
	}
}

// TestFields tells that the list of fields and the struct are about the same.
func TestFields(t *testing.T) {
	typ := reflect.TypeFor[Workload]()
	exported := 0
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() {
			continue
		}
		exported++
		if _, ok := fieldOf(strings.ToLower(f.Name[:1]) + f.Name[1:]); !ok {
			t.Errorf("%s cannot be set by a file", f.Name)
		}
	}
	if exported != len(fields) {
		t.Errorf("%d fields in a file, %d in the struct", len(fields), exported)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.yaml")
	var e *Error
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &e) || e.File != path || e.Line != 0 ||
		strings.Count(err.Error(), path) != 1 {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(dir); !errors.As(err, &e) || e.File != dir {
		t.Errorf("a folder: %v", err)
	}
	if err := os.WriteFile(path, []byte(least), 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err := Read(path); err != nil || w.Topics != 1 {
		t.Errorf("%+v, %v", w, err)
	}
	if err := os.WriteFile(path, []byte("\n"+least+"topics: 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || err.Error() != path+":5: topics: given twice; line 2 has it already" {
		t.Errorf("topics twice: %v", err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || err.Error() != path+": the file is larger than 1048576 bytes" {
		t.Errorf("a large file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(least))
	f.Add([]byte(least + "useRandomizedPayloads: true\nrandomizedPayloadPoolSize: 10\nrandomBytesRatio: 0.3\nmessageSize: 77\n"))
	f.Add([]byte(least + "subscriptionsPerTopic: 3\nconsumerPerSubscription: 2\ntestDurationMinutes: 1.5\nkeyDistributor: RANDOM_NANO\n"))
	f.Add([]byte("topics: &a [*a]\n<<: {topics: 1}\n? [a]\n: !t b\n"))
	f.Add([]byte("--- {topics: -1}\n--- |\n text\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := Parse("w.yaml", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.File != "w.yaml" || e.Line < 0 || e.Cause == nil || w != nil {
				t.Fatalf("%+v, %#v", w, err)
			}
			if text := err.Error(); strings.ContainsAny(text, "\n\x00\x1b") {
				t.Fatalf("%q", text)
			}
			return
		}
		if w.Producers() < 1 || w.Queues() < 1 || w.QueuesPerTopic() < 1 || w.Consumers() < 0 || w.BacklogSize() < 0 ||
			w.TestDuration() < 0 || w.WarmupDuration() < 0 || w.RandomBytes() < 0 || w.RandomBytes() > w.MessageSize {
			t.Fatalf("%+v", w)
		}
		w.Unsupported()
	})
}
