package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

type connectionKey struct{}

// WithConnection keeps the connection of a request where its handler finds it.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// Admit has the connection of a request stay: who is there has proved it in another way than by a certificate.
func Admit(r *http.Request) {
	if v := visitorOf(r); v != nil {
		v.stay()
	}
}

// visitorOf is the connection of a request; nil for one that no Listener has accepted.
func visitorOf(r *http.Request) *visitor {
	c, ok := r.Context().Value(connectionKey{}).(*tls.Conn)
	if !ok {
		return nil
	}
	v, _ := c.NetConn().(*visitor)
	return v
}

// SocketUser is who calls at the socket, as the kernel knows it.
func SocketUser(r *http.Request) string {
	const unknown = "the controller's socket"
	c, ok := r.Context().Value(connectionKey{}).(*net.UnixConn)
	if !ok {
		return unknown
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return unknown
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || failed != nil {
		return unknown
	}
	if u, err := user.LookupId(strconv.Itoa(int(cred.Uid))); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", cred.Uid)
}

// mostAsking is how many requests a connection without a certificate may have under way.
const mostAsking = 4

// Guest counts another request of a connection without a certificate.
func Guest(r *http.Request) (leave func(), err error) {
	v := visitorOf(r)
	if v == nil {
		return func() {}, nil
	}
	if v.asking.Add(1) > mostAsking {
		v.asking.Add(-1)
		return nil, fmt.Errorf("who shows no certificate has at most %d requests under way: end those before",
			mostAsking)
	}
	return func() { v.asking.Add(-1) }, nil
}
