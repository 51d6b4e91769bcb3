package adopttest

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"heddle/internal/host/ownfile"
	"heddle/internal/test/testkit/realhost"
)

// host is a namespace with the real program.
type host struct{ *realhost.Host }

// reboot makes the agent's saved state look as if it came from an earlier boot.
func (h *host) reboot() {
	h.T.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		h.T.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(h.Dir, "state", "default", "*.json"))
	if err != nil || len(files) < 2 {
		h.T.Fatalf("%v: %v", err, files)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil {
			open := b[:bytes.LastIndexByte(b, ',')] // without the checksum, which is the last field
			err = os.WriteFile(f, ownfile.Seal(bytes.ReplaceAll(open, bytes.TrimSpace(boot), []byte("another boot"))),
				0o600)
		}
		if err != nil {
			h.T.Fatal(err)
		}
	}
}

// begun returns the number of steps of a move that the journal records as begun; 0 without a journal.
func (h *host) begun() int {
	b, err := os.ReadFile(filepath.Join(h.Dir, "state", "default", "adoptions.json"))
	if err != nil {
		return 0
	}
	var j struct {
		Records []struct {
			Step int `json:"step"`
		} `json:"records"`
	}
	if json.Unmarshal(b, &j) != nil || len(j.Records) == 0 {
		return 0
	}
	return j.Records[0].Step
}

// dialHere connects on the calling thread, because its network namespace is the one that counts; a net.Dialer may use
// another thread.
func dialHere(to *net.TCPAddr) (net.Conn, error) {
	family := unix.AF_INET6
	var address unix.Sockaddr
	if four := to.IP.To4(); four != nil {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(four)}
	} else {
		address = &unix.SockaddrInet6{Port: to.Port, Addr: [16]byte(to.IP)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "tcp")
	defer f.Close()
	if err := unix.Connect(fd, address); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}
