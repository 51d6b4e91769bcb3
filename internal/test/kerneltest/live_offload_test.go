package kerneltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// cable joins an uplink of h to the owner's end of a port or uplink of another host: the device moves into h's
// namespace.
func (h *host) cable(uplink, device string, to *host, name string) {
	h.t.Helper()
	far := to.ends[name]
	handle, err := h.ns.Handle()
	if err != nil {
		h.t.Fatal(err)
	}
	defer handle.Close()
	h.in(far.ns, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		for _, f := range []func() error{
			func() error { return netlink.LinkSetDown(l) },
			func() error { return netlink.LinkSetName(l, device) },
			func() error { return netlink.LinkSetHardwareAddr(l, word(device)) },
			func() error { return netlink.LinkSetNsFd(l, int(handle)) },
		} {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	})
	e := &end{t: h.t}
	h.ends[uplink] = e
	h.in(h.ns, func() error { return e.hostSide(device) })
}

// cableTap joins an uplink of h, a tap of its own, to the owner's side of a tap port of another host: a nested
// hypervisor.
func (h *host) cableTap(uplink, device string, to *host, name string) {
	h.t.Helper()
	owner := &machine{end: to.ends[name]}
	owner.join(to, h.ns, device, plan.MAC(word(device)), tapOffload)
	e := &end{t: h.t}
	h.ends[uplink] = e
	h.in(h.ns, func() error { return e.hostSide(device) })
}

// offloads is four hosts. The second is behind the first one's uplink, the third nested in a trunk port of it that is a
// veth, the fourth in one that is a tap.
func offloads(t *testing.T, vlan string) map[string]*machine {
	t.Helper()
	const trunk = `  - {name: nested, vlan: {trunk: ["0", "10"]}, security: {forgedTransmits: accept, macLearning: {enabled: true}}}
`
	group := "  portGroups:\n  - {name: web, vlan: " + vlan + "}\n"
	a := newHost(t, "  uplinks: [{name: u1, device: dev1}]\n"+group+trunk, "vm1 web", "vm2 web", "tap3 web", "tap4 web",
		"tap5 web", "vm8 nested", "tap9 nested")
	b := bareHost(t, "  uplinks: [{name: u1, device: dev2}]\n"+group, "vm11 web", "tap12 web")
	b.cable("u1", "dev2", a, "u1")
	b.start()
	c := bareHost(t, "  uplinks: [{name: u1, device: dev3}]\n"+group, "vm13 web")
	c.cable("u1", "dev3", a, "vm8")
	c.start()
	d := bareHost(t, "  uplinks: [{name: u1, device: dev4}]\n"+group, "vm14 web")
	d.cableTap("u1", "dev4", a, "tap9")
	d.start()
	all := map[string]*machine{"tap5": a.machine("tap5", tapNoOffload)}
	for _, name := range []string{"vm1", "vm2", "tap3", "tap4"} {
		all[name] = a.machine(name, tapOffload)
	}
	all["vm11"], all["tap12"] = b.machine("vm11", tapOffload), b.machine("tap12", tapOffload)
	all["vm13"], all["vm14"] = c.machine("vm13", tapOffload), d.machine("vm14", tapOffload)
	return all
}

func TestOffloadedFramesCrossWholeAndChecksumsStayRight(t *testing.T) {
	testkit.Long(t, "has each kind of offload; TestS96_HostAndPortsExchangeWholeSegmentedFrames has segmented frames")
	const mtu = 1500
	for name, vlan := range map[string]string{"without VLAN": "{none: true}", "VLAN 10": "{access: 10}"} {
		t.Run(name, func(t *testing.T) {
			m := offloads(t, vlan)
			for _, pair := range []struct {
				from, to string
				whole    bool // segmentation is left to the receiver
			}{
				{"vm1", "vm2", true}, {"vm1", "tap3", true}, {"tap3", "vm1", true}, {"tap3", "tap4", true},
				{"vm1", "tap5", false}, {"tap3", "tap5", false}, {"tap5", "vm1", false},
				{"vm1", "vm11", true}, {"vm11", "vm1", true}, {"tap3", "tap12", true}, {"vm11", "tap5", false},
				{"vm1", "vm13", true}, {"vm13", "vm11", true}, {"vm13", "tap12", true}, {"tap12", "vm13", true},
				{"vm1", "vm14", true}, {"vm14", "tap3", true}, {"vm14", "vm11", true}, {"vm13", "vm14", true},
				{"vm14", "tap5", false},
			} {
				from, to := m[pair.from], m[pair.to]
				for _, format := range []string{"10.9.0.%d", "fd00::%d"} {
					at := netip.MustParseAddr(fmt.Sprintf(format, to.number))
					to.forget()
					if err := transfer(from, to, at, 3<<20); err != nil {
						t.Fatalf("TCP %s to %s by %s: %v", pair.from, pair.to, at, err)
					}
					if n := to.longest(); (n > mtu+18) != pair.whole {
						t.Errorf("TCP %s to %s by %s: the longest frame received has %d bytes", pair.from, pair.to, at,
							n)
					}
					if err := datagrams(from, to, at); err != nil {
						t.Errorf("UDP %s to %s by %s: %v", pair.from, pair.to, at, err)
					}
				}
			}
		})
	}
}

// transfer sends bytes over one TCP connection and compares what arrives.
func transfer(from, to *machine, at netip.Addr, size int) error {
	data := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte{byte(from.number), byte(to.number)}).Read(data); err != nil {
		return err
	}
	var server *net.TCPListener
	if err := to.ns.Do(func() (err error) {
		server, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	}); err != nil {
		return err
	}
	defer server.Close()
	sent := make(chan error, 1)
	go func() { sent <- sendAll(from, server.Addr().(*net.TCPAddr), data) }()
	if err := server.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		return err
	}
	c, err := server.AcceptTCP()
	if err != nil {
		return fmt.Errorf("%w; sender: %w", err, <-sent)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(4 * patience)); err != nil {
		return err
	}
	hash := sha256.New()
	n, err := io.Copy(hash, c)
	if err != nil {
		return err
	}
	if want := sha256.Sum256(data); n != int64(size) || !bytes.Equal(hash.Sum(nil), want[:]) {
		return fmt.Errorf("%d bytes arrived, of %d, and not the same", n, size)
	}
	return <-sent
}

func sendAll(from *machine, to *net.TCPAddr, data []byte) error {
	var c *net.TCPConn
	if err := from.ns.Do(func() (err error) {
		d := net.Dialer{Timeout: 2 * patience}
		conn, err := d.Dial("tcp", to.String())
		if err == nil {
			c = conn.(*net.TCPConn)
		}
		return err
	}); err != nil {
		return err
	}
	if _, err := c.Write(data); err != nil {
		return fmt.Errorf("%w, %w", err, c.Close())
	}
	return c.Close()
}

// datagrams sends UDP datagrams, by one and by the dozen in one large frame, and compares what arrives.
func datagrams(from, to *machine, at netip.Addr) error {
	var server, client *net.UDPConn
	if err := to.ns.Do(func() (err error) {
		server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
		return err
	}); err != nil {
		return err
	}
	defer server.Close()
	if err := from.ns.Do(func() (err error) {
		client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	}); err != nil {
		return err
	}
	defer client.Close()
	data := make([]byte, 12*1000)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(data); err != nil {
		return err
	}
	for _, size := range []int{1, 18, 999, 1452} {
		if _, err := client.Write(data[:size]); err != nil {
			return err
		}
		if err := expectDatagram(server, data[:size]); err != nil {
			return err
		}
	}
	// The kernel makes 12 datagrams of it at the last moment.
	if _, _, err := client.WriteMsgUDP(data, segmentSize(1000), nil); err != nil {
		return err
	}
	for i := range 12 {
		if err := expectDatagram(server, data[i*1000:(i+1)*1000]); err != nil {
			return fmt.Errorf("datagram %d of 12: %w", i, err)
		}
	}
	return nil
}

// segmentSize is the control message that asks for datagrams of n bytes.
func segmentSize(n uint16) []byte {
	b := make([]byte, unix.CmsgSpace(2))
	head := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	head.Level, head.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	head.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], n)
	return b
}

func expectDatagram(server *net.UDPConn, want []byte) error {
	buf := make([]byte, 1<<16)
	if err := server.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	n, err := server.Read(buf)
	if err != nil {
		return err
	}
	if !bytes.Equal(buf[:n], want) {
		return fmt.Errorf("%d bytes arrived, of %d, or not the same", n, len(want))
	}
	return nil
}
