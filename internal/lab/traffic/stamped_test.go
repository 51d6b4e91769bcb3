package traffic

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestStamp_IsTheKernelsTime(t *testing.T) {
	want := unix.NsecToTimespec(1_700_000_000_123_456_789)
	oob := make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(want))))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level, h.Type = unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS
	h.SetLen(unix.CmsgLen(int(unsafe.Sizeof(want))))
	data := oob[unix.CmsgLen(0):]
	binary.NativeEndian.PutUint64(data, uint64(want.Sec))
	binary.NativeEndian.PutUint64(data[8:], uint64(want.Nsec))
	if got := stamp(oob).UnixNano(); got != want.Nano() {
		t.Errorf("%d, want %d", got, want.Nano())
	}
}

func TestASinkThatTakesTheKernelsTimeCountsEveryPacket(t *testing.T) {
	sink, err := Listen(Endpoint{}, SinkOptions{Kind: KindUDP, Stamped: true,
		At: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 0)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Send(t.Context(), Endpoint{}, Load{Kind: KindUDP, Duration: 50 * time.Millisecond, Rate: 200},
		sink.Addr())
	seen, errSink := sink.Finish()
	if err != nil || errSink != nil {
		t.Fatal(err, errSink)
	}
	if p := seen.Packets; p == nil || p.Received != res.Sent.Packets || p.Received == 0 || p.FirstAt == 0 {
		t.Errorf("%+v of %+v", p, res.Sent)
	}
}
