package rpc

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"heddle/internal/identity"
)

// Connections that say nothing, and such without a certificate, are bounded, and keep no host out.
func TestS104_IdleConnectionsAreBounded(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	token := must(identity.ParseJoinToken(c.token()))(t)
	conf := identity.JoinTLS(token, identity.NewClock(time.Now))
	var idle []net.Conn
	t.Cleanup(func() {
		for _, conn := range idle {
			_ = conn.Close()
		}
	})
	for range mostGuests + 20 {
		conn := must(tls.Dial("tcp", c.address, conf))(t)
		idle = append(idle, conn)
	}
	for range 1000 {
		idle = append(idle, must(net.Dial("tcp", c.address))(t))
	}
	c.await("the oldest are ended", func() bool {
		return c.door.waiting.size() <= mostWaiting && c.door.guests.size() <= mostGuests
	})
	m := c.up("esx1")
	if n := c.door.guests.size(); n > mostGuests {
		t.Errorf("%d connections have no certificate", n)
	}
	if m.lost() != 0 {
		t.Error(m.said)
	}
	if len(c.door.slots) != 0 {
		t.Errorf("%d handshakes are computed, and nobody shakes hands", len(c.door.slots))
	}
}
