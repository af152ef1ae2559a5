package omb

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func mustParse(t *testing.T, name, data string) *Workload {
	t.Helper()
	w, err := Parse(name, []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestTotals(t *testing.T) {
	w := mustParse(t, "w.yaml", `topics: 10
partitionsPerTopic: 16
producersPerTopic: 3
subscriptionsPerTopic: 2
consumerPerSubscription: 4
messageSize: 1001
useRandomizedPayloads: true
randomBytesRatio: 0.5
randomizedPayloadPoolSize: 7
producerRate: 1000
consumerBacklogSizeGB: 3
testDurationMinutes: 1.5
warmupDurationMinutes: 0.01
`)
	if w.Producers() != 30 || w.QueuesPerTopic() != 16 || w.Queues() != 160 || w.Consumers() != 80 {
		t.Errorf("%d producers, %d queues a topic, %d in all, %d consumers", w.Producers(), w.QueuesPerTopic(), w.Queues(), w.Consumers())
	}
	if w.TestDuration() != 90*time.Second || w.WarmupDuration() != 600*time.Millisecond {
		t.Errorf("test %v, warm-up %v", w.TestDuration(), w.WarmupDuration())
	}
	if w.FindsRate() || w.RandomBytes() != 500 || w.BacklogSize() != 3<<30 {
		t.Errorf("finds the rate: %v, %d random bytes, a backlog of %d", w.FindsRate(), w.RandomBytes(), w.BacklogSize())
	}
	w = mustParse(t, "w.yaml", least+"randomBytesRatio: 1\nmessageSize: 10\nconsumerPerSubscription: 3\n")
	if !w.FindsRate() || w.RandomBytes() != 0 || w.Consumers() != 0 || w.WarmupDuration() != time.Minute {
		t.Errorf("finds the rate: %v, %d random bytes, %d consumers, warm-up %v", w.FindsRate(), w.RandomBytes(), w.Consumers(), w.WarmupDuration())
	}
	longest := mustParse(t, "w.yaml", least+"testDurationMinutes: 153722867\n").TestDuration()
	if longest != 153722867*time.Minute {
		t.Errorf("the longest test: %v", longest)
	}
}

func TestUnsupported(t *testing.T) {
	for _, c := range []struct {
		data string
		want []string
	}{
		{"testDurationMinutes: 5\nkeyDistributor: NO_KEY\nbacklogDrainRatio: 0.5\nconsumerBacklogSizeGB: 0\n", nil},
		{"testDurationMinutes: 5\nkeyDistributor: RANDOM_NANO\n", []string{
			"keyDistributor is RANDOM_NANO: a broker's client takes the partition from the key, but the store has no keys that choose a queue."}},
		{"producerRate: 1\nconsumerBacklogSizeGB: 2\nbacklogDrainRatio: 0.9\n", []string{
			"consumerBacklogSizeGB is 2: runs that pile up a backlog and measure how it is drained (to backlogDrainRatio 0.9) are not supported.",
			"testDurationMinutes is 0: the run would have no end, and fill the disk."}},
	} {
		if got := mustParse(t, "w.yaml", least+c.data).Unsupported(); !slices.Equal(got, c.want) {
			t.Errorf("%q:\n got %q\nwant %q", c.data, got, c.want)
		}
	}
}

func TestPayload(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "workloads")
	write := func(content string, path ...string) string {
		t.Helper()
		file := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("here", folder, "both.data")
	write("above", root, "both.data")
	write("5byte", root, "payload", "above.data")
	absolute := write("12345678", root, "absolute.data")

	name := filepath.Join(folder, "w.yaml")
	for _, c := range []struct{ fields, want string }{
		{"payloadFile: both.data\nmessageSize: 4", "here"},
		{"payloadFile: ../both.data\nmessageSize: 5", "above"},
		{"payloadFile: payload/above.data\nmessageSize: 5", "5byte"},
		{"payloadFile: '" + absolute + "'\nmessageSize: 8", "12345678"},
		{"messageSize: 4", ""},
		{"payloadFile: none\nmessageSize: 4\nuseRandomizedPayloads: true\nrandomizedPayloadPoolSize: 1", ""},
	} {
		body, err := mustParse(t, name, least+c.fields).Payload()
		if err != nil || string(body) != c.want {
			t.Errorf("%q: %q, %v", c.fields, body, err)
		}
	}
	for _, c := range []struct{ file, want string }{
		{"both.data", "both.data: 4 bytes, but messageSize is 5"},
		{".", ": not a regular file"},
		{"none.data", filepath.Join(folder, "none.data") + ": "},
	} {
		body, err := mustParse(t, name, "messageSize: 5\npayloadFile: "+c.file+"\n"+least).Payload()
		if body != nil || err == nil || !strings.HasPrefix(err.Error(), name+":2: payloadFile: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", c.file, body, err)
		}
		if missing := c.file == "none.data"; errors.Is(err, fs.ErrNotExist) != missing {
			t.Errorf("%s: %v", c.file, err)
		}
	}
}
