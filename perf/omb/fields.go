package omb

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	// maxCount is the largest number of the benchmark.
	maxCount = math.MaxInt32
	// maxMinutes is what a time.Duration can hold.
	maxMinutes = float64(math.MaxInt64 / int64(time.Minute))
	// maxBacklog is the largest backlog whose bytes an int64 can count.
	maxBacklog = math.MaxInt64 >> 30
)

// field is a field of a workload file.
type field struct {
	name   string
	needed bool
	set    func(*Workload, *yaml.Node) error
}

// fields are all of them, in the order of the benchmark.
var fields = []field{
	{name: "name", set: text(func(w *Workload) *string { return &w.Name })},
	{name: "topics", needed: true, set: count(1, func(w *Workload) *int { return &w.Topics })},
	{name: "partitionsPerTopic", needed: true, set: count(1, func(w *Workload) *int { return &w.PartitionsPerTopic })},
	{name: "keyDistributor", set: setKeys},
	{name: "messageSize", set: count(0, func(w *Workload) *int { return &w.MessageSize })},
	{name: "useRandomizedPayloads", set: setRandomized},
	{name: "randomBytesRatio", set: ratio(func(w *Workload) *float64 { return &w.RandomBytesRatio })},
	{name: "randomizedPayloadPoolSize", set: count(0, func(w *Workload) *int { return &w.RandomizedPayloadPoolSize })},
	{name: "payloadFile", set: text(func(w *Workload) *string { return &w.PayloadFile })},
	{name: "subscriptionsPerTopic", set: count(0, func(w *Workload) *int { return &w.SubscriptionsPerTopic })},
	{name: "producersPerTopic", needed: true, set: count(1, func(w *Workload) *int { return &w.ProducersPerTopic })},
	{name: "consumerPerSubscription", set: count(0, func(w *Workload) *int { return &w.ConsumerPerSubscription })},
	{name: "producerRate", set: count(0, func(w *Workload) *int { return &w.ProducerRate })},
	{name: "consumerBacklogSizeGB", set: setBacklog},
	{name: "backlogDrainRatio", set: ratio(func(w *Workload) *float64 { return &w.BacklogDrainRatio })},
	{name: "testDurationMinutes", set: duration(func(w *Workload) *float64 { return &w.TestDurationMinutes })},
	{name: "warmupDurationMinutes", set: duration(func(w *Workload) *float64 { return &w.WarmupDurationMinutes })},
}

func fieldOf(name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

// text takes any scalar, as it is written; null is no text.
func text(at func(*Workload) *string) func(*Workload, *yaml.Node) error {
	return func(w *Workload, n *yaml.Node) error {
		s, err := scalar(n)
		if err != nil {
			return err
		}
		*at(w) = s
		return nil
	}
}

func scalar(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode {
		switch n.ShortTag() {
		case "!!null":
			return "", nil
		case "!!str", "!!int", "!!float", "!!bool", "!!timestamp", "!!merge":
			return n.Value, nil
		}
	}
	return "", fmt.Errorf("want a text, got %s", describe(n))
}

// count takes whole numbers from low on.
func count(low int64, at func(*Workload) *int) func(*Workload, *yaml.Node) error {
	return func(w *Workload, n *yaml.Node) error {
		v, err := whole(n, low, maxCount)
		if err != nil {
			return err
		}
		*at(w) = int(v)
		return nil
	}
}

func setBacklog(w *Workload, n *yaml.Node) (err error) {
	w.ConsumerBacklogSizeGB, err = whole(n, 0, maxBacklog)
	return err
}

// ratio takes 0..1.
func ratio(at func(*Workload) *float64) func(*Workload, *yaml.Node) error {
	return func(w *Workload, n *yaml.Node) (err error) {
		*at(w), err = decimal(n, 1)
		return err
	}
}

// duration takes minutes and fractions of them.
func duration(at func(*Workload) *float64) func(*Workload, *yaml.Node) error {
	return func(w *Workload, n *yaml.Node) error {
		m, err := decimal(n, maxMinutes)
		if err != nil {
			return err
		}
		if m > 0 && minutes(m) == 0 {
			return errors.New("shorter than a nanosecond; 0 would mean something else")
		}
		*at(w) = m
		return nil
	}
}

func setRandomized(w *Workload, n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		return fmt.Errorf("want true or false, got %s", describe(n))
	}
	w.UseRandomizedPayloads = strings.EqualFold(n.Value, "true")
	return nil
}

func setKeys(w *Workload, n *yaml.Node) error {
	if s, err := scalar(n); err == nil {
		for _, k := range []KeyDistributor{NoKey, KeyRoundRobin, RandomNano} {
			if s == string(k) {
				w.KeyDistributor = k
				return nil
			}
		}
	}
	return fmt.Errorf("want %s, %s or %s, got %s", NoKey, KeyRoundRobin, RandomNano, describe(n))
}

var (
	// Numbers that start with 0 are octal to some readers, so they are none.
	wholeForm   = regexp.MustCompile(`^[-+]?(0|[1-9][0-9_]*)$`)
	decimalForm = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?$`)
)

// whole takes a whole number in low..high.
func whole(n *yaml.Node, low, high int64) (int64, error) {
	if !isNumber(n) || !wholeForm.MatchString(n.Value) {
		return 0, fmt.Errorf("want a whole number in decimal digits, got %s", describe(n))
	}
	v, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
	if err != nil || v < low || v > high {
		return 0, fmt.Errorf("%s is not in %d..%d", plain(n.Value), low, high)
	}
	return v, nil
}

// decimal takes a number in 0..high.
func decimal(n *yaml.Node, high float64) (float64, error) {
	if !isNumber(n) || !decimalForm.MatchString(n.Value) {
		return 0, fmt.Errorf("want a number in decimal digits, got %s", describe(n))
	}
	v, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || v < 0 || v > high {
		return 0, fmt.Errorf("%s is not in 0..%.0f", plain(n.Value), high)
	}
	return v, nil
}

func isNumber(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !isQuoted(n) && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float")
}

func isQuoted(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
}

// describe says what a value is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode:
		return "an alias"
	}
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		return "no value"
	case isQuoted(n):
		return "the quoted text " + quote(n.Value)
	case tag == "!!str" || tag == "!!merge":
		return "the text " + quote(n.Value)
	case tag == "!!int" || tag == "!!float" || tag == "!!bool" || tag == "!!timestamp":
		return plain(n.Value)
	default:
		return "a value tagged " + plain(tag)
	}
}
