package codec

import (
	"bytes"
	"testing"
)

// TestFindRecords: every place with a magic is found from both sides, at the
// edges too, and a blank record is no message.
func TestFindRecords(t *testing.T) {
	v1, v2, blank := readGolden(t, "message_v1"), readGolden(t, "message_v2_ipv6"), readGolden(t, "blank")
	b := bytes.Join([][]byte{v1, v2, blank, v1}, []byte{0})
	starts := []int{0, len(v1) + 1, len(v1) + len(v2) + len(blank) + 3}
	var forward, backward []int
	for at := 0; ; {
		i := FindMessage(b[at:])
		if i < 0 {
			break
		}
		forward = append(forward, at+i)
		at += i + 1
	}
	for at := FindLastMessage(b, len(b)); at >= 0; at = FindLastMessage(b, at) {
		backward = append([]int{at}, backward...)
	}
	for i, got := range [][]int{forward, backward} {
		if len(got) != len(starts) || got[0] != starts[0] || got[1] != starts[1] || got[2] != starts[2] {
			t.Errorf("way %d: messages at %v, want %v", i, got, starts)
		}
	}
	if at, want := FindBlank(b), len(v1)+len(v2)+2; at != want {
		t.Errorf("a blank record at %d, want %d", at, want)
	}
	for n := range BlankSize {
		if n < MessageMagicOffset+magicAlike && (FindMessage(v1[:n]) >= 0 || FindLastMessage(v1[:n], n) >= 0) || FindBlank(blank[:n]) >= 0 {
			t.Errorf("%d bytes hold a magic", n)
		}
	}
	if FindLastMessage(v1, 0) >= 0 || FindLastMessage(nil, 0) >= 0 {
		t.Error("a message below its own place")
	}
	// The magics differ in their last byte, which is left out.
	if differ := uint32(MessageMagicV1 ^ MessageMagicV2); differ == 0 || differ > 0xff {
		t.Errorf("the magics differ by %#x", differ)
	}
	requireNoAllocs(t, func() { FindLastMessage(b, len(b)); FindMessage(b); FindBlank(b); PeekMessage(b) })
}
