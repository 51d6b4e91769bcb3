package hostdev

import (
	"encoding/binary"
	"testing"
)

// TestLossesAreReadFromTheirFields: each counter of struct rtnl_link_stats64 has its position as value.
func TestLossesAreReadFromTheirFields(t *testing.T) {
	var b []byte
	for n := range uint64(25) {
		b = binary.NativeEndian.AppendUint64(b, n)
	}
	want := Losses{RxErrors: 4, TxErrors: 5, RxDropped: 6, TxDropped: 7, RxFrames: 13, RxMissed: 15}
	if got := parseLosses(b); got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
	want.RxMissed = 0
	if got := parseLosses(b[:8*15]); got != want {
		t.Errorf("of a kernel with fewer counters: read %+v, want %+v", got, want)
	}
}
