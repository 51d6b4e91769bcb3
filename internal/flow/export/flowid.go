package export

import (
	"encoding/binary"

	"heddle/internal/flow"
)

// flowIDBits is how many bits of a flowId distinguish flows that began in the same millisecond. The other bits are
// the start; they suffice until the year 2109.
const flowIDBits = 22

// flowID identifies a flow at the port with that number, in all its records, also those of the next agent: its start in
// milliseconds since 1970, and in the low bits a sum of the fields of its key.
func flowID(k *flow.Key, port uint32, start int64) uint64 {
	word := binary.LittleEndian.Uint64
	h := uint64(0)
	for _, w := range [...]uint64{uint64(port)<<32 | uint64(k.VLAN)<<16 | uint64(k.EtherType), word(k.Src[:8]),
		word(k.Src[8:]), word(k.Dst[:8]), word(k.Dst[8:]),
		uint64(k.SrcPort)<<48 | uint64(k.DstPort)<<32 | uint64(k.Protocol)<<8 | uint64(k.Direction),
		uint64(binary.LittleEndian.Uint32(k.SrcMAC[:])) | uint64(binary.LittleEndian.Uint16(k.SrcMAC[4:]))<<32,
		uint64(binary.LittleEndian.Uint32(k.DstMAC[:])) | uint64(binary.LittleEndian.Uint16(k.DstMAC[4:]))<<32} {
		h = (h ^ w) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return uint64(max(start, 0))<<flowIDBits | h>>(64-flowIDBits)
}
