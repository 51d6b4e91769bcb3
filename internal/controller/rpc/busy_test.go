package rpc

import (
	"bytes"
	"crypto/tls"
	"io"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// A controller that is busy answers the keep-alives of its hosts meanwhile: a host that gets no answer in five seconds
// goes to another controller, which is as busy then.
func TestS103_AControllerAnswersKeepAlivesWhileItIsBusy(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	conf := must(m.record.TLS())(t)
	conf.NextProtos = []string{http2.NextProtoTLS}
	conn := must(tls.Dial("tcp", c.address, conf))(t)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	must(io.WriteString(conn, http2.ClientPreface))(t)
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	c.fleet.mu.Lock() // nothing that a host or a person asks goes on
	defer c.fleet.mu.Unlock()
	for n := range byte(3) {
		data := [8]byte(bytes.Repeat([]byte{n + 1}, 8))
		if err := f.WritePing(false, data); err != nil {
			t.Fatal(err)
		}
		for answered := false; !answered; {
			frame, err := f.ReadFrame()
			if err != nil {
				t.Fatalf("ping %d is not answered: %v", n, err)
			}
			ping, is := frame.(*http2.PingFrame)
			answered = is && ping.IsAck() && ping.Data == data
		}
	}
}
