package testkit

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// The ports that Unused gives: the kernel assigns none of them by itself (ip_local_port_range begins at 32768), so that
// no connection of another program has one meanwhile.
const (
	firstUnused = 10_000
	manyUnused  = 22_000
	perProcess  = 64
)

// given counts the ports that this process was given.
var given atomic.Int64

// Unused is an address of the loopback, with a port, at which nobody listens on TCP or UDP. A test can listen there
// later, end that and begin again.
func Unused(t testing.TB) string {
	t.Helper()
	for range manyUnused {
		n := int64(os.Getpid())*perProcess + given.Add(1)
		at := net.JoinHostPort("127.0.0.1", strconv.FormatInt(firstUnused+n%manyUnused, 10))
		if free("tcp4", at) && free("udp4", at) {
			return at
		}
	}
	t.Fatal("every port is in use")
	return ""
}

// free reports whether a port can be had.
func free(network, at string) bool {
	if network == "udp4" {
		c, err := net.ListenPacket(network, at)
		return err == nil && c.Close() == nil
	}
	l, err := net.Listen(network, at)
	return err == nil && l.Close() == nil
}
