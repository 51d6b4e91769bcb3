package hostnet

import (
	"errors"
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestAKernelWithoutTCPDiagKnowsNoSessions: a host whose kernel does not list TCP connections changes its host ports
// all the same. Another error is one.
func TestAKernelWithoutTCPDiagKnowsNoSessions(t *testing.T) {
	for _, missing := range []error{unix.ENOENT, unix.EPROTONOSUPPORT, unix.EOPNOTSUPP} {
		list, err := sessionsBy(func(uint8) ([]*netlink.InetDiagTCPInfoResp, error) { return nil, missing })
		if len(list) != 0 || err != nil {
			t.Errorf("%v: %v, %v", missing, list, err)
		}
	}
	one := &netlink.InetDiagTCPInfoResp{TCPInfo: &netlink.TCPInfo{}, InetDiagMsg: &netlink.Socket{
		State: netlink.TCP_ESTABLISHED, ID: netlink.SocketID{Source: net.IPv4(192, 0, 2, 1).To4(), SourcePort: 22,
			Destination: net.IPv4(192, 0, 2, 9).To4(), DestinationPort: 4000}}}
	list, err := sessionsBy(func(family uint8) ([]*netlink.InetDiagTCPInfoResp, error) {
		if family == unix.AF_INET6 {
			return nil, unix.ENOENT
		}
		return []*netlink.InetDiagTCPInfoResp{one}, nil
	})
	if len(list) != 1 || err != nil || list[0].Remote.Port() != 4000 {
		t.Errorf("IPv4 alone: %v, %v", list, err)
	}
	_, err = sessionsBy(func(uint8) ([]*netlink.InetDiagTCPInfoResp, error) { return nil, unix.EPERM })
	if !errors.Is(err, unix.EPERM) {
		t.Errorf("another error: %v", err)
	}
}
