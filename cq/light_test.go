package cq

import (
	"fmt"
	"testing"

	"github.com/stratalog/stratalog/codec"
	"github.com/stratalog/stratalog/contract"
)

// applyProps applies a record with properties, and returns its end.
func applyProps(t *testing.T, s *Store, topic string, at, phy int64, flag codec.SysFlag, props []byte) int64 {
	t.Helper()
	m := codec.Message{Magic: codec.MessageMagicV1, QueueOffset: at, PhysicalOffset: phy, SysFlag: flag, StoreTimestamp: 1,
		BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Topic: []byte(topic), Properties: props}
	b := make([]byte, m.Size())
	_, err := m.Encode(b)
	must(t, err)
	var v codec.MessageView
	must(t, v.Parse(b))
	must(t, s.Apply(contract.RecordID{Epoch: 1, Offset: contract.Offset(phy), Length: int64(len(b))}, &v))
	return phy + int64(len(b))
}

func lightProps(names, numbers string) []byte {
	return codec.AppendProperty(codec.AppendProperty(nil, codec.PropertyMultiDispatch, names), codec.PropertyMultiOffsets, numbers)
}

// TestLightWild: numbers and names that no store gave stop no lane.
func TestLightWild(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 100})
	phy := int64(0)
	for i, c := range []struct {
		names, numbers string
		wild           uint64
	}{
		{"%LMQ%a", "0", 0},
		{"%LMQ%a", "5000000000000000", 1},
		{"%LMQ%a", "4611686018427387904", 1},
		{"%LMQ%a", "9223372036854775808", 0},
		{"%LMQ%a", "-3", 0},
		{"%LMQ%a", "x", 0},
		{"%LMQ%a,%LMQ%b", "1", 0},
		{"%LMQ%a", "1,2", 0},
		{"%LMQ%a/b,%LMQ%a", "1,1", 1},
		{"other,%LMQ%a", "1,2", 0},
		{"%LMQ%a,,", "3,,", 0},
	} {
		before := s.Stats().Wild
		phy = applyProps(t, s, "t", int64(i), phy, 0, lightProps(c.names, c.numbers))
		must(t, s.Commit())
		if got := s.Stats().Wild - before; got != c.wild {
			t.Errorf("%q %q: %d wild, want %d", c.names, c.numbers, got, c.wild)
		}
		if s.Max("t", 0) != int64(i)+1 {
			t.Fatalf("%q: the record's own queue ends at %d", c.numbers, s.Max("t", 0))
		}
	}
	if got := fmt.Sprint(s.Topics(), s.Max("%LMQ%a", 0)); got != "[%LMQ%a t] 4" {
		t.Errorf("%s", got)
	}
}

// TestLightOfNoQueue: records of these kinds are in no light queue.
func TestLightOfNoQueue(t *testing.T) {
	s := mustOpen(t, newSim(t), Options{FileSize: 100})
	props := lightProps("%LMQ%a", "0")
	phy := applyProps(t, s, "%RETRY%g", 0, 0, 0, props)
	phy = applyProps(t, s, "rmq_sys_x", 0, phy, 0, props)
	phy = applyProps(t, s, codec.ScheduleTopic, 0, phy, 0, props)
	phy = applyProps(t, s, "t", 0, phy, codec.SysFlagTransactionPrepared, props)
	phy = applyProps(t, s, "t", 0, phy, codec.SysFlagTransactionRollback, props)
	applyProps(t, s, "t", 0, phy, codec.SysFlagTransactionCommit, props)
	must(t, s.Commit())
	if s.Max("%LMQ%a", 0) != 1 || s.Max("t", 0) != 1 {
		t.Errorf("%d, %d", s.Max("%LMQ%a", 0), s.Max("t", 0))
	}
	var u [1]codec.QueueUnit
	if n, err := s.Units("%LMQ%a", 0, 0, u[:]); n != 1 || err != nil || u[0].PhysicalOffset != phy {
		t.Errorf("%d, %v, %+v", n, err, u)
	}
}

// TestLightQueuesCostNothing: records of no light queue pay no allocation.
func TestLightQueuesCostNothing(t *testing.T) {
	m := codec.Message{Magic: codec.MessageMagicV1, BornHost: make([]byte, 8), StoreHost: make([]byte, 8), Topic: []byte("t"),
		Properties: lightProps("%LMQ%a,%LMQ%b", "1,22")}
	b := make([]byte, m.Size())
	_, err := m.Encode(b)
	must(t, err)
	var v codec.MessageView
	must(t, v.Parse(b))
	if n := testing.AllocsPerRun(100, func() {
		if !Belongs(&v, "%LMQ%b", 0, 22) || Belongs(&v, "%LMQ%b", 0, 21) || Belongs(&v, "%LMQ%b", 1, 22) {
			t.Error("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
