package rpc

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/platform/serve"
)

// uplinkText is what the first message of probes says of an uplink.
func uplinkText(n byte) *controllerv1.ProbeUplinks {
	return &controllerv1.ProbeUplinks{Uplinks: []*controllerv1.ProbeUplink{{Switch: "dvs", Uplink: "uplink1",
		Mac: []byte{2, 0, 0, 0, 0, n}, Mtu: 1500, Vlans: []uint32{10}}}}
}

// framed is a host's connection of which a test writes and reads the frames.
type framed struct {
	*http2.Framer
	t *testing.T
}

// impatient is the controller at another address, where who does not read is left soon.
func (c *controller) impatient() (address string) {
	c.t.Helper()
	s := *c.Server
	s.ReaderTime = 200 * time.Millisecond
	l := must(net.Listen("tcp", "127.0.0.1:0"))(c.t)
	srv := s.HTTP(s.Hosts())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(serve.NewListener(l, s.TLS.TLS(), s.refused, serve.Bounds{})) }()
	c.t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			c.t.Error(err)
		}
		<-done
	})
	return l.Addr().String()
}

// framed connects a host that has proved who it is. Its streams get what window lets through.
func (m *machine) framed(t *testing.T, address string, window uint32) *framed {
	t.Helper()
	conf := must(m.record.TLS())(t)
	conf.NextProtos = []string{http2.NextProtoTLS}
	conn := must(tls.Dial("tcp", address, conf))(t)
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	must(io.WriteString(conn, http2.ClientPreface))(t)
	f := &framed{http2.NewFramer(conn, conn), t}
	if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	return f
}

// calls begins a call by a stream, with a first message.
func (f *framed) calls(procedure string, first proto.Message) {
	f.t.Helper()
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", procedure},
		{":authority", "controller"}, {"content-type", "application/connect+proto"}} {
		if err := enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(),
		EndHeaders: true}); err != nil {
		f.t.Fatal(err)
	}
	body := must(proto.Marshal(first))(f.t)
	data := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	if err := f.WriteData(1, false, data); err != nil {
		f.t.Fatal(err)
	}
}

// untilReset answers keep-alives until the stream is reset.
func (f *framed) untilReset() {
	f.t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			f.t.Fatalf("the connection ends, and not the stream: %v", err)
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			return
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// A host that answers keep-alives, and takes nothing of what it is sent, is left: it holds no goroutine and no memory
// of the controller's.
func TestS104_AHostThatReadsNothingIsLeft(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	at := c.impatient()
	for name, first := range map[string]proto.Message{
		controllerv1connect.HostServiceFollowProbesProcedure: &controllerv1.FollowProbesRequest{Uplinks: uplinkText(1)},
		controllerv1connect.HostServiceFollowSegmentsProcedure: &controllerv1.FollowSegmentsRequest{
			Hello: &controllerv1.SegmentHello{}, Report: &controllerv1.SegmentReport{Whole: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := m.framed(t, at, 0)
			f.calls(name, first)
			f.untilReset()
		})
	}
}

// What a host says beside its slice may be as much as it likes, as long as each message is bounded: the stream lasts.
func TestS104_AStreamBesideTheSliceLasts(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	stream := must(c.call(must(m.record.TLS())(t)).FollowProbes(t.Context()))(t)
	defer stream.Close()
	rounds := 2 * guestBody / proto.Size(&controllerv1.FollowProbesRequest{Uplinks: uplinkText(1)})
	for n := range rounds {
		if err := stream.Send(&controllerv1.FollowProbesRequest{Uplinks: uplinkText(byte(n))}); err != nil {
			_, why := stream.Receive()
			t.Fatalf("message %d of %d: %v, %v", n, rounds, err, why)
		}
	}
	if _, err := stream.Receive(); err != nil {
		t.Errorf("after %d messages: %v", rounds, err)
	}
	c.await("the last one is heard", func() bool {
		for _, h := range c.probes.Read(&controllerv1.ReadProbesHereRequest{}).GetHosts() {
			if u := h.GetUplinks().GetUplinks(); len(u) == 1 && u[0].GetMac()[5] == byte(rounds-1) {
				return true
			}
		}
		return false
	})
}
