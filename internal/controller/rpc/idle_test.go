package rpc

import (
	"crypto/tls"
	"heddle/internal/identity"
	"net"
	"testing"
	"time"
)

// Connections that say nothing, and such without a certificate, are bounded, and keep no host out.
func TestS104_IdleConnectionsAreBounded(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	const mostGuests, mostWaiting = 256, 500 // as of the listener
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
		idle = append(idle, must(net.Dial("tcp", c.address))(t)) // a new connection ends older ones
		held := c.listener.Held()
		return held.Waiting <= mostWaiting && held.Guests <= mostGuests
	})
	m := c.up("esx1")
	if n := c.listener.Held().Guests; n > mostGuests {
		t.Errorf("%d connections have no certificate", n)
	}
	if m.lost() != 0 {
		t.Error(m.said)
	}
	if c.listener.Held().Computing != 0 {
		t.Errorf("%d handshakes are computed, and nobody shakes hands", c.listener.Held().Computing)
	}
}
