package wire

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"pgregory.net/rapid"
)

// The kernel's filter and Takes decide alike, for any rule and any frame.
func TestS98_TheFilterInTheKernelIsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		listen := Listen{EtherType: testType, MinPayload: rapid.IntRange(0, 20).Draw(t, "least")}
		address := rapid.Custom(func(t *rapid.T) [6]byte {
			return [6]byte{1, 0x80, 0xc2, 0, rapid.ByteRange(0, 1).Draw(t, "fifth"),
				rapid.ByteRange(0, 2).Draw(t, "last")}
		})
		listen.Groups = rapid.SliceOfN(address, 0, 3).Draw(t, "groups")
		if rapid.Bool().Draw(t, "some senders") {
			listen.Sources = rapid.SliceOfN(address, 0, 40).Draw(t, "sources")
			if listen.Sources == nil {
				listen.Sources = [][6]byte{}
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "fields") {
			n := rapid.SampledFrom([]int{1, 2, 4, 5, 16}).Draw(t, "length")
			listen.Fields = append(listen.Fields, Field{Offset: rapid.IntRange(0, 5).Draw(t, "offset"),
				Values: rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange(0, 1), n, n), 1, 3).Draw(t, "values")})
		}
		f := &Frame{Destination: address.Draw(t, "to"), Source: address.Draw(t, "from"),
			EtherType: rapid.SampledFrom([]uint16{testType, 0x8100}).Draw(t, "type"),
			Payload:   rapid.SliceOfN(rapid.ByteRange(0, 1), 0, 24).Draw(t, "payload")}
		if len(listen.Fields) > 0 && rapid.Bool().Draw(t, "fits") { // random fields would hardly ever match
			x := listen.Fields[0]
			f.Payload = slices.Concat(make([]byte, x.Offset), x.Values[len(x.Values)-1], f.Payload)
		}
		vm, err := bpf.NewVM(append(listen.bytes(), bpf.RetConstant{Val: maxFrame}))
		if err != nil {
			t.Fatal(err)
		}
		raw := slices.Concat(f.Destination[:], f.Source[:], binary.BigEndian.AppendUint16(nil, f.EtherType), f.Payload)
		n, err := vm.Run(raw)
		if err != nil {
			t.Fatal(err)
		}
		if took := n > 0; took != listen.Takes(f) {
			t.Fatalf("the kernel takes it: %v; the rule: %v\n%+v\n%x", took, listen.Takes(f), listen, raw)
		}
	})
}

func TestListen_TooManySourcesAreAnError(t *testing.T) {
	if _, err := (Listen{EtherType: testType, Sources: make([][6]byte, 1000)}).filter(1); err == nil {
		t.Error("a filter that the kernel refuses is made")
	}
}
