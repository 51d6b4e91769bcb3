package transport

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"heddle/internal/identity"
)

// DefaultListen is where a host takes calls about moves: TCP port 7413 of all its addresses.
const DefaultListen = ":7413"

// None has a host take no calls about moves: its ports wait for their guests with nothing of what they had before.
const None = "none"

// Bounds on both sides.
const (
	// maxMessage is how many bytes one message has at most.
	maxMessage = 4 << 20
	// mostAddresses is how many addresses a host offers, and how many are tried.
	mostAddresses = 8
	// pingAfter is how long a silent connection is trusted, pingTime how long an answer to a ping may take.
	pingAfter = 5 * time.Second
	pingTime  = 5 * time.Second
	// handshakeTime bounds the handshake of TLS.
	handshakeTime = 10 * time.Second
)

// Identity is who this host is, as long as it is in a cluster: an error else.
type Identity func() (*identity.Between, error)

// between has the identity looked up with each handshake, since a host may leave its cluster and join another one.
func (i Identity) between() identity.Between {
	return identity.Between{
		Own: func() (*identity.Credentials, error) {
			b, err := i()
			if err != nil {
				return nil, err
			}
			return b.Own()
		},
		Now: func() time.Time {
			if b, err := i(); err == nil && b.Now != nil {
				return b.Now()
			}
			return time.Now()
		},
	}
}

// CheckListen returns what is wrong with an address to listen at; "" and None are none.
func CheckListen(at string) error {
	if at == "" || at == None {
		return nil
	}
	host, port, err := net.SplitHostPort(at)
	if err == nil && host != "" {
		_, err = netip.ParseAddr(host)
	}
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is no address to take calls of other hosts at: give :PORT for all addresses of this "+
			"host, ADDRESS:PORT for one of them, or none", at)
	}
	return nil
}
