package codec

import (
	"encoding/hex"
	"strings"
)

// AppendHost appends a host to dst, as a HostV4 or a HostV6. Of an IPv4
// address only addr[12:] is used, which is where netip.Addr.As16 and
// net.IP.To16 put it.
func AppendHost(dst []byte, addr [16]byte, ipv6 bool, port int32) []byte {
	// No host is illegal, so there is no error.
	if ipv6 {
		h := HostV6{Address: addr, Port: port}
		dst, _ = h.Append(dst)
		return dst
	}
	h := HostV4{Address: [4]byte(addr[12:]), Port: port}
	dst, _ = h.Append(dst)
	return dst
}

// MessageID returns the id by which Java's tools name a stored message: a
// StoredID in upper-case hex, 32 or 56 digits.
func MessageID(storeHost []byte, phy int64) string {
	var buf [HostV6Size + 8]byte
	id := StoredID{StoreHost: storeHost, PhysicalOffset: phy}
	b, _ := id.Append(buf[:0]) // no id is illegal
	return strings.ToUpper(hex.EncodeToString(b))
}
