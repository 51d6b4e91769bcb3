package smoke

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"

	"heddle/internal/test/testkit"
)

// overTCP makes the agent send records to the collector over TCP, at another port, until end is called.
func (r *flowRig) overTCP() (end func()) {
	r.T.Helper()
	r.collector.close()
	var l net.Listener
	if err := r.Do(func() (err error) { l, err = net.Listen("tcp4", "127.0.0.1:0"); return err }); err != nil {
		r.T.Fatal(err)
	}
	r.collector.port = l.Addr().(*net.TCPAddr).Port
	var reading sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	reading.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
			reading.Go(func() { r.collector.stream(conn) })
		}
	})
	end = sync.OnceFunc(func() {
		_ = l.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		reading.Wait()
	})
	r.T.Cleanup(end)
	return end
}

// stream takes the messages of a connection, each as long as it says.
func (c *collector) stream(conn net.Conn) {
	b := make([]byte, 65536)
	for {
		_, err := io.ReadFull(conn, b[:4])
		if err != nil {
			return // the end, between two messages or not
		}
		message := b[:binary.BigEndian.Uint16(b[2:])]
		if _, err = io.ReadFull(conn, message[4:]); err == nil {
			err = c.take(conn.RemoteAddr().(*net.TCPAddr).AddrPort(), message)
		}
		if err != nil && !errors.Is(err, net.ErrClosed) {
			c.mu.Lock()
			c.failed = errors.Join(c.failed, fmt.Errorf("a message over TCP: %w", err))
			c.mu.Unlock()
			return
		}
	}
}

// TestEveryPacketIsInARecordOverTCP: packets pass, records end by idleness, and the agent is killed under load and
// started again: the collector has every packet, to the byte, in as many sessions as there were agents, and no message
// is cut off.
func TestEveryPacketIsInARecordOverTCP(t *testing.T) {
	testkit.Long(t, "kills agents under load; TestS63_D6_WhatIsMeteredIsChosenByPortAndDirection has records")
	r := newFlowRig(t)
	r.overTCP()
	config := strings.Replace(flowConfig, "port: %d}", "port: %d, transport: tcp}", 1)
	meter := func(on bool) { r.Configure(fmt.Sprintf(config, r.collector.port, maxFlows, on)) }
	r.begin(fmt.Sprintf(config, r.collector.port, maxFlows, true))
	r.sendOverDrains(100)
	r.awaitAll("idle flows are told of")
	for range 2 {
		r.send(3000, 50)
		r.Await("the first of them are drained", func() bool { return r.status().Flows > 0 })
		r.End(syscall.SIGKILL)
		r.send(1000, 50) // with no agent
		r.Start("")
	}
	meter(false)
	r.awaitAll("over the deaths of agents")
	if st := r.status().Collectors; len(st) != 1 || st[0].Transport != "tcp" ||
		!strings.HasPrefix(st[0].Collector, "tcp://127.0.0.1:") || st[0].Lost != 0 || st[0].Unsure != 0 {
		t.Errorf("%+v", st)
	}
	r.collector.mu.Lock()
	sessions := len(r.collector.sessions)
	r.collector.mu.Unlock()
	if sessions < 3 {
		t.Errorf("%d sessions, want one of each agent at least", sessions)
	}
	r.collector.sound()
}
