package codec

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestJSONRoundTrip: what AppendJSON writes, encoding/json reads back to the
// same values.
func TestJSONRoundTrip(t *testing.T) {
	want := sampleState()
	var v StateView
	if err := v.Parse(stateBytes(t, want)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		State
		LogID string
	}
	if err := json.Unmarshal(v.AppendJSON(nil), &got); err != nil {
		t.Fatalf("%v in\n%s", err, v.AppendJSON(nil))
	}
	if got.LogID != hex.EncodeToString(want.LogID[:]) {
		t.Errorf("LogID is %q", got.LogID)
	}
	got.State.LogID = want.LogID
	if !reflect.DeepEqual(got.State, want) {
		t.Errorf("got  %+v\nwant %+v", got.State, want)
	}
}

// TestJSONOfAnyText: text of any bytes gives a JSON string, as encoding/json
// would write it.
func TestJSONOfAnyText(t *testing.T) {
	for _, topic := range []string{"", "T", "a\"b\\c/d\n\t\x00\x1f\x7f", "é\u2028\u2029\U0001F600", "\xff\xfe", "<&>"} {
		m := QueueKey{Topic: []byte(topic), QueueID: 1}
		b, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		var v QueueKeyView
		if err := v.Parse(b); err != nil {
			t.Fatal(err)
		}
		var got struct{ Topic string }
		if err := json.Unmarshal(v.AppendJSON(nil), &got); err != nil {
			t.Fatalf("%q: %v in %s", topic, err, v.AppendJSON(nil))
		}
		if want := strings.ToValidUTF8(topic, "\ufffd"); got.Topic != want && topic != "\xff\xfe" {
			t.Errorf("%q is read as %q", topic, got.Topic)
		}
	}
}

func TestString(t *testing.T) {
	unit := TimerUnit{Previous: -1, Mark: TimerMarkDefault | TimerMarkRoll | 0x40, MessageSize: 115}
	b, err := unit.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v TimerUnitView
	if err := v.Parse(b); err != nil {
		t.Fatal(err)
	}
	want := "TimerUnit{Size:52 Previous:-1 Mark:Default|Roll|0x40 EnqueueTime:0 Delay:0 PhysicalOffset:0 MessageSize:115 " +
		"TopicHash:0 Reserved:0}"
	if got := v.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(v.AppendJSON(nil)); !strings.Contains(got, `"Mark":["Default","Roll","0x40"]`) {
		t.Errorf("JSON %s", got)
	}
}

// TestRecordViews: the table reads records by name.
func TestRecordViews(t *testing.T) {
	golden := map[string]string{"Message": "message_v1", "QueueUnit": "queue_unit", "QueueKey": "queue_key"}
	for _, r := range Records() {
		if file := golden[r.Name]; file != "" {
			b := readGolden(t, file)
			v, err := r.View(b)
			if err != nil || string(v.Bytes()) != string(b) || !strings.HasPrefix(string(v.AppendText(nil)), r.Name+"{") {
				t.Errorf("%s: %v, %v", r.Name, v, err)
			}
			if r.Fixed != (r.Name == "QueueUnit") {
				t.Errorf("%s is of one size: %v", r.Name, r.Fixed)
			}
		}
		v, err := r.View(nil)
		var e *FieldError
		if r.MinSize > 0 && (v != nil || !errors.As(err, &e) || e.Record != r.Name) {
			t.Errorf("%s of no bytes: %v, %v", r.Name, v, err)
		}
	}
}

// TestSysFlagNames: a message's flags are printed by name, those of others as
// bits.
func TestSysFlagNames(t *testing.T) {
	var v MessageView
	if err := v.Parse(readGolden(t, "message_v2_ipv6")); err != nil {
		t.Fatal(err)
	}
	if got := v.String(); !strings.Contains(got, " SysFlag:Transaction=Commit|BornHostV6|StoreHostV6 ") {
		t.Errorf("%s", got)
	}
	if got := string(v.AppendJSON(nil)); !strings.Contains(got, `"SysFlag":["Transaction=Commit","BornHostV6","StoreHostV6"]`) {
		t.Errorf("%s", got)
	}
	for flag, want := range map[SysFlag]string{
		0: "0", SysFlagCompressed | SysFlagCompressionLZ4: "Compressed|Compression=LZ4", 0x400: "Compression=0x400",
		-0x80000000 | SysFlagTransactionPrepared: "Transaction=Prepared|0x80000000",
	} {
		if got := flag.String(); got != want {
			t.Errorf("%#x is %s, want %s", uint32(flag), got, want)
		}
	}
}

// TestRecords: the table finds records by name and describes them with the
// places of their fields, those of entries included.
func TestRecords(t *testing.T) {
	b := stateBytes(t, sampleState())
	found := map[string]FieldInfo{}
	for _, r := range Records() {
		if r.Name != "State" {
			continue
		}
		n, err := r.Describe(b, func(f FieldInfo) bool {
			found[f.Name] = f
			return true
		})
		if err != nil || n != len(b) {
			t.Fatalf("Describe = %d, %v", n, err)
		}
		if _, err := r.Describe(b[1:], func(FieldInfo) bool { return true }); err == nil {
			t.Error("bytes that are no state are described")
		}
	}
	for _, want := range []FieldInfo{
		{"Sequence", 24, 8, "3"},
		{"Clean", 64, 1, "true"},
		{"Epochs", 108, 24, "[EpochEntry{Epoch:1 Start:0},EpochEntry{Epoch:2 Start:500}]"},
		{"Epochs[1].Start", 124, 8, "500"},
		{"Cursors[2].Lane", 108 + 24 + 32 + 42, 1, "6"},
	} {
		if got := found[want.Name]; got != want {
			t.Errorf("got  %s\nwant %s", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
		}
	}
}

// TestUnknownValue: an error about an enum has the number, not the hex of a name.
func TestUnknownValue(t *testing.T) {
	b := append([]byte("topic"), make([]byte, 40)...)
	key := QueueEdgeKey{Topic: b[:5], Edge: 77}
	_, err := key.Append(nil)
	if err == nil || !strings.Contains(err.Error(), "is 0x4d,") {
		t.Errorf("%v", err)
	}
}
