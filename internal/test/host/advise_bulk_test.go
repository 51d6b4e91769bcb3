package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// oneQueueOfTwo is an uplink's device that could receive by two queues and does by one.
func (l *adviceLab) oneQueueOfTwo(device string) {
	l.t.Helper()
	l.ip(fmt.Sprintf("link add %s numtxqueues 2 numrxqueues 2 type veth peer name f-%s netns %s", device, device,
		l.far.Name))
	run(l.t, l.far, "ip link set f-"+device+" addrgenmode none up")
	l.ip("link set " + device + " addrgenmode none up")
	err := l.ns.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		_, err = e.SetChannels(device, ethtool.Channels{RxCount: 1, TxCount: 1})
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// plainGuest is a guest without offloads, as one with an emulated adapter is, behind a tap. What is written to the file
// it sends.
func (l *adviceLab) plainGuest(tap string) *os.File {
	l.t.Helper()
	var fd int
	err := l.ns.Do(func() (err error) {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		req, err := unix.NewIfreq(tap)
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
			return err
		}
		return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0)
	})
	if err != nil {
		l.t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), tap)
	l.t.Cleanup(func() { _ = file.Close() })
	l.ip("link set " + tap + " addrgenmode none up")
	return file
}

// bulkPacket is a TCP segment of 60 kB in pieces of 1,000 bytes, as a guest hands it to its host: a virtio header, then
// the frame (RFC 791, RFC 9293).
func bulkPacket() []byte {
	const payload, headers, ip, tcp = 60_000, 54, 14, 34
	var b bytes.Buffer
	b.Write([]byte{1, 1, headers, 0, 0xe8, 3, tcp, 0, 16, 0}) // checksum to be completed; TCPv4; 1,000 bytes each
	f := make([]byte, headers+payload)
	copy(f, "\x02\x00\x00\x00\x00\xfe\x02\x00\x00\x00\x00\x29\x08\x00\x45\x00")
	binary.BigEndian.PutUint16(f[ip+2:], headers-ip+payload)
	copy(f[ip+8:], "\x40\x06")
	copy(f[ip+12:], "\xc0\x00\x02\x29\xc0\x00\x02\xfe")
	var sum uint32
	for i := ip; i < tcp; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(f[i:]))
	}
	binary.BigEndian.PutUint16(f[ip+10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(f[tcp:], 5001)
	binary.BigEndian.PutUint16(f[tcp+2:], 5001)
	f[tcp+12], f[tcp+13] = 5<<4, 0x10
	b.Write(f)
	return b.Bytes()
}

// bulk sends by a tap until the test ends, in steps: 20 packets of 60 kB every 2 ms are 4.8 Gb/s.
func (l *adviceLab) bulk(tap *os.File) {
	done, ended := make(chan struct{}), make(chan struct{})
	l.t.Cleanup(func() { close(done); <-ended })
	packet := bulkPacket()
	go func() {
		defer close(ended)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			for range 20 {
				if _, err := tap.Write(packet); err != nil {
					l.t.Errorf("the guest cannot send: %v", err)
					return
				}
			}
		}
	}()
}
