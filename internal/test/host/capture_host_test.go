package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
)

const capturedHost = `switches:
  - name: s
    portGroups:
      - {name: plain}
      - {name: trunk, vlan: {trunk: ["0", "10-20"]}}
      - {name: ten, vlan: {access: 10}}
ports:
  - {name: vm1/eth0, switch: s, portGroup: plain, device: cap1, mac: "02:00:00:00:0c:01"}
  - {name: vm2/eth0, switch: s, portGroup: plain, device: cap2, mac: "02:00:00:00:0c:02"}
  - {name: vm3/eth0, switch: s, portGroup: trunk, device: cap3, mac: "02:00:00:00:0c:03"}
  - {name: vm4/eth0, switch: s, portGroup: ten, device: cap4, mac: "02:00:00:00:0c:04"}
  - {name: vmk0, switch: s, portGroup: plain, role: host, mac: "02:00:00:00:0c:05", addresses: [10.8.0.5/24]}
`

// captureHost is a host with four guests, and an agent.
func captureHost(t *testing.T) (*host, map[string]*netns.NS) {
	t.Helper()
	h := newHost(t)
	silence(t, h.ns)
	guests := map[string]*netns.NS{}
	for i := range 4 {
		name := fmt.Sprintf("vm%d/eth0", i+1)
		guests[name] = h.guest(fmt.Sprintf("cap%d", i+1), fmt.Sprintf("02:00:00:00:0c:%02x", i+1),
			fmt.Sprintf("10.8.0.%d/24", i+1))
		silence(t, guests[name])
		h.ip(fmt.Sprintf("link set cap%d up", i+1))
	}
	h.start("--config", h.file("heddle.yaml", capturedHost))
	for name := range guests {
		h.awaitPort(name, "up")
	}
	h.awaitPort("vmk0", "up")
	return h, guests
}

// silence turns IPv6 and the checks of known neighbours off: nothing shall be sent but what the test sends.
func silence(t *testing.T, ns *netns.NS) {
	t.Helper()
	err := ns.Do(func() error {
		for name, value := range map[string]string{"base_reachable_time_ms": "3600000",
			"delay_first_probe_time": "3600"} {
			all, err := filepath.Glob("/proc/sys/net/ipv4/neigh/*/" + name) // those to come are made like "default"
			if err != nil {
				return err
			}
			for _, file := range all {
				if err := os.WriteFile(file, []byte(value), 0); err != nil {
					return err
				}
			}
		}
		for _, of := range []string{"all", "default"} {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+of+"/disable_ipv6", []byte("1"), 0); err != nil &&
				!errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sendRaw sends a frame as it is.
func sendRaw(t *testing.T, ns *netns.NS, device string, frame string) {
	t.Helper()
	var b []byte
	if _, err := fmt.Sscanf(strings.ReplaceAll(frame, " ", ""), "%x", &b); err != nil {
		t.Fatal(err)
	}
	b = append(b, make([]byte, max(60-len(b), 0))...)
	err := ns.Do(func() error {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, b, 0, &unix.SockaddrLinklayer{Ifindex: i.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// transfer sends so many bytes by TCP.
func transfer(t *testing.T, from, to *netns.NS, address string, size int) {
	t.Helper()
	var l net.Listener
	err := to.Do(func() (err error) { l, err = net.Listen("tcp", address); return err })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- 0
			return
		}
		n, _ := io.Copy(io.Discard, c)
		_ = c.Close()
		got <- n
	}()
	err = from.Do(func() error {
		c, err := net.DialTimeout("tcp", l.Addr().String(), time.Minute)
		if err != nil {
			return err
		}
		_, err = c.Write(bytes.Repeat([]byte("heddle "), size/7))
		return errors.Join(err, c.Close())
	})
	if n := <-got; err != nil || n != int64(size/7*7) {
		t.Fatalf("%d bytes arrived of %d: %v", n, size, err)
	}
}
