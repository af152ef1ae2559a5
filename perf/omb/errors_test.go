package omb

import (
	"errors"
	"strings"
	"testing"
)

func TestErrors(t *testing.T) {
	long := strings.Repeat("x", 70)
	for _, c := range []struct{ data, want string }{
		// The file.
		{"", "w.yaml: the file holds no workload"},
		{"\n# nothing\n", "w.yaml: the file holds no workload"},
		{"---\n", "w.yaml: the file holds no workload"},
		{"null\n", "w.yaml: the file holds no workload"},
		{"\n- topics: 1\n", "w.yaml:2: want fields and their values, got a list"},
		{"topics\n", `w.yaml:1: want fields and their values, got the text "topics"`},
		{least + "---\ntopics: 2\n", "w.yaml:4: a second document; a workload file holds one"},
		{least + "---\n", "w.yaml:4: a second document; a workload file holds one"},
		{"topics: 1\nname: a: b\n", "w.yaml:2: mapping values are not allowed in this context"},
		{least + "\tname: a\n", "w.yaml:4: found a tab character that violates indentation"},
		{"name: @\n", "w.yaml:1: found character that cannot start any token"},
		{"topics: *t\n", "w.yaml:1: unknown anchor 't' referenced"},
		{least + "- a\n", "w.yaml:4: did not find expected key"},
		{"topics: 1\n...\ntopics: 1\n", "w.yaml:3: a second document; a workload file holds one"},
		{"topics: 1\nname: \xff\n", "w.yaml:2: byte 0xff is not UTF-8 text"},
		{"topics: 1\nname: \x1b\n", "w.yaml:2: control character U+001B"},
		{"\xff\xfet\x00", "w.yaml:1: byte 0xff is not UTF-8 text"},

		// The fields.
		{least + "topic: 2\n", "w.yaml:4: topic: unknown field; did you mean topics?"},
		{least + "consumersPerSubscription: 2\n", "w.yaml:4: consumersPerSubscription: unknown field; did you mean consumerPerSubscription?"},
		{"\n\nMessageSize: 2\n", "w.yaml:3: MessageSize: unknown field; did you mean messageSize?"},
		{"producer_rate: 2\n", "w.yaml:1: producer_rate: unknown field; did you mean producerRate?"},
		{"topicNames: [a]\n", "w.yaml:1: topicNames: unknown field"},
		{"a b: 1\n", `w.yaml:1: "a b": unknown field`},
		{"\"a\\nb\": 1\n", `w.yaml:1: "a\nb": unknown field`},
		{long + ": 1\n", `w.yaml:1: "` + long[:60] + `"...: unknown field`},
		{"<<: {topics: 1}\n", `w.yaml:1: "<<": unknown field`},
		{"? [topics]\n: 1\n", "w.yaml:1: want the name of a field, got a list"},
		{"topics: 1\n\ntopics: 1\n", "w.yaml:3: topics: given twice; line 1 has it already"},
		{"name: a\n", "w.yaml: topics: missing; at least 1 is needed"},
		{"topics: 1\nproducersPerTopic: 1\n", "w.yaml: partitionsPerTopic: missing; at least 1 is needed"},
		{"topics: 1\npartitionsPerTopic: 1\n", "w.yaml: producersPerTopic: missing; at least 1 is needed"},

		// Whole numbers.
		{"topics: 0\n", "w.yaml:1: topics: 0 is not in 1..2147483647"},
		{"topics: -1\n", "w.yaml:1: topics: -1 is not in 1..2147483647"},
		{"partitionsPerTopic: 0\n", "w.yaml:1: partitionsPerTopic: 0 is not in 1..2147483647"},
		{"producersPerTopic: 0\n", "w.yaml:1: producersPerTopic: 0 is not in 1..2147483647"},
		{"messageSize: -1\n", "w.yaml:1: messageSize: -1 is not in 0..2147483647"},
		{"randomizedPayloadPoolSize: -1\n", "w.yaml:1: randomizedPayloadPoolSize: -1 is not in 0..2147483647"},
		{"subscriptionsPerTopic: -1\n", "w.yaml:1: subscriptionsPerTopic: -1 is not in 0..2147483647"},
		{"consumerPerSubscription: -1\n", "w.yaml:1: consumerPerSubscription: -1 is not in 0..2147483647"},
		{"producerRate: 2147483648\n", "w.yaml:1: producerRate: 2147483648 is not in 0..2147483647"},
		{"producerRate: 99999999999999999999\n", "w.yaml:1: producerRate: 99999999999999999999 is not in 0..2147483647"},
		{"consumerBacklogSizeGB: -1\n", "w.yaml:1: consumerBacklogSizeGB: -1 is not in 0..8589934591"},
		{"topics: ten\n", `w.yaml:1: topics: want a whole number in decimal digits, got the text "ten"`},
		{"topics: '1'\n", `w.yaml:1: topics: want a whole number in decimal digits, got the quoted text "1"`},
		{"topics: !!str 1\n", `w.yaml:1: topics: want a whole number in decimal digits, got the text "1"`},
		{"topics: !t 1\n", `w.yaml:1: topics: want a whole number in decimal digits, got a value tagged "!t"`},
		{"topics:\n", "w.yaml:1: topics: want a whole number in decimal digits, got no value"},
		{"topics: 1.0\n", "w.yaml:1: topics: want a whole number in decimal digits, got 1.0"},
		{"topics: 1e3\n", "w.yaml:1: topics: want a whole number in decimal digits, got 1e3"},
		{"topics: 0x10\n", "w.yaml:1: topics: want a whole number in decimal digits, got 0x10"},
		{"topics: 010\n", "w.yaml:1: topics: want a whole number in decimal digits, got 010"},
		{"topics: true\n", "w.yaml:1: topics: want a whole number in decimal digits, got true"},
		{"topics: 2026-01-01\n", "w.yaml:1: topics: want a whole number in decimal digits, got 2026-01-01"},
		{"topics: [1]\n", "w.yaml:1: topics: want a whole number in decimal digits, got a list"},
		{"topics: &m {a: *m}\n", "w.yaml:1: topics: want a whole number in decimal digits, got a mapping"},

		// Other numbers.
		{"randomBytesRatio: 1.5\n", "w.yaml:1: randomBytesRatio: 1.5 is not in 0..1"},
		{"randomBytesRatio: .nan\n", "w.yaml:1: randomBytesRatio: want a number in decimal digits, got .nan"},
		{"backlogDrainRatio: -0.1\n", "w.yaml:1: backlogDrainRatio: -0.1 is not in 0..1"},
		{"testDurationMinutes: -1\n", "w.yaml:1: testDurationMinutes: -1 is not in 0..153722867"},
		{"testDurationMinutes: 1e300\n", "w.yaml:1: testDurationMinutes: 1e300 is not in 0..153722867"},
		{"testDurationMinutes: 1e-12\n", "w.yaml:1: testDurationMinutes: shorter than a nanosecond; 0 would mean something else"},
		{"testDurationMinutes: 5m\n", `w.yaml:1: testDurationMinutes: want a number in decimal digits, got the text "5m"`},
		{"warmupDurationMinutes: 153722868\n", "w.yaml:1: warmupDurationMinutes: 153722868 is not in 0..153722867"},

		// The rest.
		{"name: [a]\n", "w.yaml:1: name: want a text, got a list"},
		{"payloadFile: !!binary YQ==\n", "w.yaml:1: payloadFile: want a text, got a value tagged \"!!binary\""},
		{"useRandomizedPayloads: yes\n", `w.yaml:1: useRandomizedPayloads: want true or false, got the text "yes"`},
		{"useRandomizedPayloads: 1\n", "w.yaml:1: useRandomizedPayloads: want true or false, got 1"},
		{"keyDistributor: no_key\n", `w.yaml:1: keyDistributor: want NO_KEY, KEY_ROUND_ROBIN or RANDOM_NANO, got the text "no_key"`},
		{"keyDistributor:\n", "w.yaml:1: keyDistributor: want NO_KEY, KEY_ROUND_ROBIN or RANDOM_NANO, got no value"},
		{least + "useRandomizedPayloads: true\n", "w.yaml:4: useRandomizedPayloads: randomizedPayloadPoolSize is 0; at least 1 is needed"},
		{least + "subscriptionsPerTopic: 1\n", "w.yaml:4: subscriptionsPerTopic: consumerPerSubscription is 0; at least 1 is needed"},
		{least + "consumerBacklogSizeGB: 1\n",
			"w.yaml:4: consumerBacklogSizeGB: producerRate is 0; no backlog can be built while the highest rate is sought"},
		{"topics: 65536\npartitionsPerTopic: 32768\nproducersPerTopic: 1\n",
			"w.yaml:2: partitionsPerTopic: more than 2147483647 queues in all"},
		{"topics: 65536\npartitionsPerTopic: 1\nproducersPerTopic: 2147483647\n",
			"w.yaml:3: producersPerTopic: more than 2147483647 producers in all"},
		{"topics: 65536\n" + least[len("topics: 1\n"):] + "subscriptionsPerTopic: 32768\nconsumerPerSubscription: 1\n",
			"w.yaml:4: subscriptionsPerTopic: more than 2147483647 subscriptions in all"},
		{"topics: 1024\n" + least[len("topics: 1\n"):] + "subscriptionsPerTopic: 1024\nconsumerPerSubscription: 2048\n",
			"w.yaml:5: consumerPerSubscription: more than 2147483647 consumers in all"},
	} {
		w, err := Parse("w.yaml", []byte(c.data))
		if w != nil || err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.data, err, c.want)
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.File != "w.yaml" || errors.Unwrap(err) == nil {
			t.Errorf("%q: %#v", c.data, err)
		}
	}
	_, err := Parse("w.yaml", []byte(least+"topic: 2\n"))
	if e, ok := err.(*Error); !ok || e.Line != 4 || e.Field != "topic" || e.Cause.Error() != "unknown field; did you mean topics?" {
		t.Errorf("%#v", err)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "ac", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
