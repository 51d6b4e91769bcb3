package kerneltest

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// wire writes a frame out. Its words are bytes in hex or names: vm1, vm2 … and tap1 … are the ports' MACs
// 02:00:00:00:00:01 … and 12:00:00:00:00:01 …, nest1 … MACs behind ports (06:…), ext1 … MACs in the physical network
// (0e:…), dev1 … the uplink devices' (0a:…), all is broadcast; q10 is an 802.1Q tag with VLAN 10, ad10 an 802.1ad one.
// [100] ends the frame with that many bytes of payload; without it there are 46.
func wire(text string) []byte {
	var f []byte
	payload := 46
	for w := range strings.FieldsSeq(text) {
		if n, ok := strings.CutPrefix(w, "["); ok {
			payload = number(strings.TrimSuffix(n, "]"))
			continue
		}
		f = append(f, word(w)...)
	}
	for i := range payload {
		f = append(f, byte(i))
	}
	return f
}

func word(w string) []byte {
	for prefix, first := range map[string]byte{"vm": 2, "tap": 0x12, "nest": 6, "ext": 0x0e, "dev": 0x0a} {
		if n, ok := strings.CutPrefix(w, prefix); ok {
			return []byte{first, 0, 0, 0, 0, byte(number(n))}
		}
	}
	if w == "all" {
		return []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	}
	for prefix, tpid := range map[string][]byte{"q": {0x81, 0x00}, "ad": {0x88, 0xa8}} {
		if n, ok := strings.CutPrefix(w, prefix); ok && len(w) < 7 {
			if v, err := strconv.Atoi(n); err == nil {
				return append(tpid, byte(v>>8), byte(v))
			}
		}
	}
	b, err := hex.DecodeString(w)
	if err != nil {
		panic(fmt.Sprintf("%q is neither bytes in hex nor a name", w))
	}
	return b
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}
