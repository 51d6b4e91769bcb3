package testkit

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// roomBytes holds what comes while a slow machine does something else than to read.
const roomBytes = 64 << 20

// Room gives a socket 64 MiB for what has not been read, beyond the system's limit for users; it takes root. A datagram
// that finds no room is gone without a word, and nobody counts it.
func Room(t testing.TB, conn syscall.Conn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, roomBytes)
	}); err != nil {
		t.Fatal(err)
	}
	if set != nil {
		t.Fatal(set)
	}
}
