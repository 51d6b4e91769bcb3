package traffic

import (
	"bytes"
	"net"
	"testing"
)

func floodOf(kind FloodKind) *floodFrames {
	return newFloodFrames(Flood{Kind: kind, To: net.HardwareAddr{2, 0, 0, 0, 0, 9}, MinSize: 60, MaxSize: 1514,
		Seed: 7}, net.HardwareAddr{2, 0, 0, 0, 0, 1})
}

func TestFloodsAreWhatTheyAreCalled(t *testing.T) {
	own, to, all := []byte{2, 0, 0, 0, 0, 1}, []byte{2, 0, 0, 0, 0, 9}, bytes.Repeat([]byte{0xff}, 6)
	for kind, want := range map[FloodKind]struct {
		dst, src []byte // nil: another one in every frame
	}{
		WellBehaved: {to, own}, RandomSource: {to, nil}, RandomBytes: {nil, nil}, BroadcastStorm: {all, own},
		UnknownUnicast: {nil, own},
	} {
		g, length := floodOf(kind), floodOf(WellBehaved)
		dsts, srcs := map[string]bool{}, map[string]bool{}
		for range 1000 {
			f := g.next()
			if n := len(length.next()); len(f) != n || n < 60 || n > 1514 {
				t.Fatalf("%s: %d bytes, well-behaved %d", kind, len(f), n)
			}
			dsts[string(f[:6])], srcs[string(f[6:12])] = true, true
			if kind != RandomBytes && f[6]&1 != 0 {
				t.Fatalf("%s: the source %x is a group", kind, f[6:12])
			}
			if kind == UnknownUnicast && f[0]&1 != 0 {
				t.Fatalf("the destination %x is a group", f[:6])
			}
		}
		for what, c := range map[string]struct {
			got  map[string]bool
			want []byte
		}{"destination": {dsts, want.dst}, "source": {srcs, want.src}} {
			if c.want == nil && len(c.got) < 990 || c.want != nil && (len(c.got) != 1 || !c.got[string(c.want)]) {
				t.Errorf("%s: %d different %ss", kind, len(c.got), what)
			}
		}
	}
}

func TestAFloodOfImpossibleFramesIsRefused(t *testing.T) {
	for _, f := range []Flood{{MinSize: 59, MaxSize: 60}, {MinSize: 100, MaxSize: 60}, {MinSize: 60, MaxSize: 1515}} {
		if _, err := StartFlood(Endpoint{}, f); err == nil {
			t.Errorf("%+v is sent", f)
		}
	}
	if _, err := StartFlood(Endpoint{}, Flood{MinSize: 60, MaxSize: 60, Device: "nosuchdevice"}); err == nil {
		t.Error("a device that is not there is sent by")
	}
}
