package dump

import (
	"encoding/hex"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stratalog/stratalog/codec"
)

// times are the fields that hold epoch milliseconds.
var times = map[string]bool{"BornTimestamp": true, "StoreTimestamp": true, "StoreTime": true, "BeginTime": true, "EndTime": true,
	"PhysicTimestamp": true, "LogicsTimestamp": true, "IndexTimestamp": true, "CreatedAt": true, "EnqueueTime": true,
	"LastReadTime": true, "Timestamp": true, "DeliverTime": true, "Hour": true}

// hosts are the fields that hold an address and a port.
var hosts = map[string]bool{"BornHost": true, "StoreHost": true}

// pair is a property of a message.
type pair struct{ name, value string }

// decoded is what a field says, beyond its value as the layout has it.
type decoded struct {
	text  string
	pairs []pair // of properties, else nil
}

// decode says what field means, whose bytes are b; false if its value says it
// all.
func decode(field codec.FieldInfo, b []byte) (decoded, bool) {
	name := field.Name[strings.LastIndexByte(field.Name, '.')+1:]
	switch {
	case times[name]:
		ms, err := strconv.ParseInt(field.Value, 10, 64)
		if err != nil || ms <= 0 || ms > 253402300799999 { // the year 9999
			return decoded{}, false
		}
		return decoded{text: time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")}, true
	case hosts[name]:
		text, ok := host(b)
		return decoded{text: text}, ok
	case name == "Properties":
		data, ok := content(field, b)
		if !ok || len(data) == 0 {
			return decoded{}, false
		}
		var d decoded
		codec.WalkProperties(data, func(name, value []byte) bool {
			d.pairs = append(d.pairs, pair{string(name), string(value)})
			d.text += " " + plain(name) + "=" + plain(value)
			return true
		})
		d.text = strings.TrimPrefix(d.text, " ")
		return d, d.pairs != nil
	}
	data, ok := content(field, b)
	if !ok || len(data) == 0 || !printable(data) {
		return decoded{}, false
	}
	return decoded{text: string(data)}, true
}

// content returns the bytes of a field of bytes, without a length before them.
func content(field codec.FieldInfo, b []byte) ([]byte, bool) {
	n := len(field.Value)
	if n < 2 || field.Value[0] != '"' || n%2 != 0 {
		return nil, false
	}
	n = (n - 2) / 2
	if n > len(b) {
		return nil, false
	}
	data := b[len(b)-n:]
	return data, hex.EncodeToString(data) == field.Value[1:len(field.Value)-1]
}

// host reads an address and a port of four bytes.
func host(b []byte) (string, bool) {
	var v4 codec.HostV4View
	var v6 codec.HostV6View
	var addr netip.Addr
	port := int32(-1)
	switch {
	case len(b) == codec.HostV4Size && v4.Parse(b) == nil:
		addr, port = netip.AddrFrom4(v4.Address()), v4.Port()
	case len(b) == codec.HostV6Size && v6.Parse(b) == nil:
		addr, port = netip.AddrFrom16(v6.Address()), v6.Port()
	}
	if port < 0 || port > math.MaxUint16 {
		return "", false
	}
	return netip.AddrPortFrom(addr, uint16(port)).String(), true
}

// printable says whether b is text that a terminal may be shown.
func printable(b []byte) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, c := range string(b) {
		if !unicode.IsPrint(c) && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// plain is b as it is, or quoted if it holds what does not print.
func plain(b []byte) string {
	if q := strconv.Quote(string(b)); q[1:len(q)-1] != string(b) {
		return q
	}
	return string(b)
}
