package controller

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// listeners are where a controller answers.
type listeners struct {
	hosts, socket net.Listener
	api, metrics  net.Listener // nil for none
	// advertised is where people and tools find it: "" for nowhere.
	advertised string
}

// listen listens at all of them, or at none.
func (o Options) listen() (at *listeners, err error) {
	at = &listeners{}
	defer func() {
		if err != nil {
			err = errors.Join(err, at.close())
		}
	}()
	if o.Metrics != "" {
		if at.metrics, err = listenLoopback(o.Metrics); err != nil {
			return at, err
		}
	}
	if at.hosts, err = net.Listen("tcp", o.Listen); err != nil {
		return at, fmt.Errorf("listen for agents: %w", err)
	}
	if o.API != "" {
		if at.api, err = net.Listen("tcp", o.API); err != nil {
			return at, fmt.Errorf("listen for people and tools (--api-listen): %w", err)
		}
		// It is reached by the name that agents are told, at its own port.
		name, _, err := net.SplitHostPort(o.Advertise)
		if err != nil {
			return at, fmt.Errorf("the address that agents are told (--advertise): %w", err)
		}
		_, port, err := net.SplitHostPort(at.api.Addr().String())
		if err != nil {
			return at, err
		}
		at.advertised = net.JoinHostPort(name, port)
	}
	at.socket, err = listenUnix(o.Socket)
	return at, err
}

func (at *listeners) close() (err error) {
	for _, l := range []net.Listener{at.hosts, at.api, at.metrics, at.socket} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// listenLoopback listens where nobody but this machine's own programs come.
func listenLoopback(address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("--metrics %s: give an address of the loopback with a port, such as 127.0.0.1:9947",
			address)
	}
	if !at.Addr().Unmap().IsLoopback() {
		return nil, fmt.Errorf("--metrics %s can be reached from other machines: give 127.0.0.1:%d, or have them read "+
			"/metrics at the port for people and tools, with a viewer's token", address, at.Port())
	}
	return net.Listen("tcp", address)
}
