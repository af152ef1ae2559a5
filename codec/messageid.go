package codec

import (
	"encoding/hex"
	"strconv"
)

// MessageIDError says why a text is no message id.
type MessageIDError struct {
	// Text is what was given.
	Text string
	// Reason is a sentence without a full stop.
	Reason string
}

// Error names the text and the reason.
func (e *MessageIDError) Error() string {
	return "codec: message id " + strconv.Quote(e.Text) + ": " + e.Reason
}

// ParseMessageID is the inverse of MessageID: it returns the store host, of
// HostV4Size or HostV6Size bytes, and the physical offset. Digits may be of
// either case. The error is a *MessageIDError.
func ParseMessageID(id string) (storeHost []byte, phy int64, err error) {
	b, err := hex.DecodeString(id)
	if err != nil {
		return nil, 0, &MessageIDError{id, "it is not in hexadecimal"}
	}
	if len(b) != HostV4Size+8 && len(b) != HostV6Size+8 {
		return nil, 0, &MessageIDError{id, "it has neither 32 nor 56 digits"}
	}
	var v StoredIDView
	if err := v.Parse(b); err != nil {
		return nil, 0, &MessageIDError{id, err.Error()}
	}
	if v.PhysicalOffset() < 0 {
		return nil, 0, &MessageIDError{id, "its offset is negative"}
	}
	return v.StoreHost(), v.PhysicalOffset(), nil
}
