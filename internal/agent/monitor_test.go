package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// fakeQEMU is a monitor in memory whose adapter the test sets.
type fakeQEMU struct {
	path string
	l    net.Listener

	mu     sync.Mutex
	filter string // answer to query-rx-filter, or a whole line that is not an answer
	status string // answer to query-status
	reads  int    // how often the adapters were read
	conns  []net.Conn
}

func newFakeQEMU(t *testing.T, path, filter string) *fakeQEMU {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	q := &fakeQEMU{path: path, l: l, filter: filter}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			q.mu.Lock()
			q.conns = append(q.conns, conn)
			q.mu.Unlock()
			serving.Go(func() { q.serve(conn) })
		}
	})
	t.Cleanup(func() { q.end(); serving.Wait() })
	return q
}

// end ends QEMU.
func (q *fakeQEMU) end() {
	q.l.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.conns {
		c.Close()
	}
}

func (q *fakeQEMU) serve(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var command struct {
			Execute string
			ID      uint64
		}
		if json.Unmarshal(lines.Bytes(), &command) != nil {
			return
		}
		q.mu.Lock()
		answer := "{}"
		if command.Execute == "query-rx-filter" {
			answer = q.filter
			q.reads++
		}
		if command.Execute == "query-status" && q.status != "" {
			answer = fmt.Sprintf(`{"status": %q}`, q.status)
		}
		q.mu.Unlock()
		if _, err := fmt.Fprintf(conn, `{"return": %s, "id": %d}`+"\n", answer, command.ID); err != nil {
			return
		}
	}
}

// isReadAgain waits until the adapters were read so often.
func (q *fakeQEMU) isReadAgain(t *testing.T, times int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		q.mu.Lock()
		reads := q.reads
		q.mu.Unlock()
		if reads >= times {
			return
		}
	}
	t.Fatal("the adapters are not read again")
}

// becomes makes the guest change its adapter.
func (q *fakeQEMU) becomes(filter string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.filter = filter
	for _, c := range q.conns {
		_, _ = fmt.Fprintln(c, `{"event": "NIC_RX_FILTER_CHANGED", "data": {}}`) // one of them may have ended
	}
}

// says gives QEMU another status, and sends the events.
func (q *fakeQEMU) says(status string, events ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.status = status
	for _, c := range q.conns {
		for _, e := range events {
			_, _ = fmt.Fprintln(c, e) // one of them may have ended
		}
	}
}

func nicFilter(mac string, promiscuous bool) string {
	return fmt.Sprintf(`[{"name": "net0", "main-mac": %q, "promiscuous": %v, "unicast": "normal"}]`, mac, promiscuous)
}

// until runs the loop until the condition holds.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case call := <-r.Calls():
			call()
		case <-r.settler.itsTurn():
			r.settler.settle()
		case <-deadline:
			r.t.Fatalf("never came: %s; problems %v, adapters %v", what, r.Active().Problems, r.waiting.Monitors())
		}
	}
}

func (f *fakeDevices) tap(name string) *hostdev.Device {
	f.next++
	d := &hostdev.Device{Index: f.next, Name: name, Kind: hostdev.Tap, Driver: "tun",
		End: hostdev.End{MTU: 1500, AdminUp: true, Carrier: true}}
	f.byName[name] = d
	return d
}

// monitoredPort returns a rig with port "vm" on a tap, whose guest's monitor is at path.
func monitoredPort(t *testing.T, path string) *rig {
	t.Helper()
	r := newRig(t, base)
	r.watchMonitors()
	t.Cleanup(func() {
		if err := r.parts.Close(); err != nil {
			t.Error(err)
		}
	})
	r.dev.tap("tap0")
	err := r.connect(spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01",
		Monitor: spec.Monitor{Socket: path, NIC: "net0"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) fact(port string) plan.Fact { return r.Active().Applied.Facts[id(port)] }

func TestD1_D2_AMonitorShowsTheAdapterBehindATap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	r := monitoredPort(t, path)
	r.until("why nothing is known", func() bool { return r.Active().Problems[id("vm")].Code == problem.MonitorMissing })
	if f := r.fact("vm"); !f.Up || !f.SeenMAC.IsZero() || f.Promiscuous != plan.AsksUnknown {
		t.Errorf("without a monitor: %+v", f)
	}
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", false))
	r.until("seen", func() bool { return r.fact("vm").SeenMAC.String() == "52:54:00:00:00:01" })
	if f := r.fact("vm"); f.Promiscuous != plan.AsksNo || !r.Active().Problems[id("vm")].None() {
		t.Errorf("%+v, problem %q", f, r.Active().Problems[id("vm")])
	}
	q.becomes(nicFilter("52:54:00:00:00:99", true))
	r.until("changed", func() bool {
		return r.fact("vm").SeenMAC.String() == "52:54:00:00:00:99" && r.fact("vm").Promiscuous == plan.AsksYes
	})
	q.end()
	r.until("unknown again", func() bool {
		return r.fact("vm").SeenMAC.IsZero() &&
			r.fact("vm").Promiscuous == plan.AsksUnknown
	})
	newFakeQEMU(t, path, nicFilter("52:54:00:00:00:02", false))
	r.until("the guest is back", func() bool { return r.fact("vm").SeenMAC.String() == "52:54:00:00:00:02" })
}

func TestD1_D2_WhatAMonitorShowedEndsWithItsGuest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	newFakeQEMU(t, path, nicFilter("52:54:00:00:00:99", true))
	r := monitoredPort(t, path)
	r.until("seen", func() bool { return !r.fact("vm").SeenMAC.IsZero() })
	r.dev.byName["tap0"].Carrier = false // QEMU closed the tap
	r.settler.settle()
	r.until("forgotten", func() bool { return r.waiting.Monitors() == 0 })
	if f := r.fact("vm"); !f.SeenMAC.IsZero() || f.Promiscuous != plan.AsksUnknown {
		t.Errorf("%+v", f)
	}
}

func TestD1_D2_TheAdaptersOfAGuestShareItsMonitor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	r := monitoredPort(t, path)
	r.dev.tap("tap1")
	err := r.connect(spec.Port{Name: "vm/1", PortGroup: "web", Device: "tap1", MAC: "52:54:00:00:00:11",
		Monitor: spec.Monitor{Socket: path, NIC: "net1"}})
	if err != nil {
		t.Fatal(err)
	}
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", true))
	r.until("one is seen", func() bool { return r.fact("vm").SeenMAC.String() == "52:54:00:00:00:01" })
	if p := r.Active().Problems[id("vm/1")]; p.Code != problem.AdapterUnknown {
		t.Errorf("%q", p)
	}
	q.becomes(strings.Replace(nicFilter("52:54:00:00:00:01", true), "[",
		strings.Replace(strings.Trim(nicFilter("52:54:00:00:00:11", false), "]"), "net0", "net1", 1)+",", 1))
	r.until("both are", func() bool {
		return r.fact("vm/1").SeenMAC.String() == "52:54:00:00:00:11" && r.fact("vm/1").Promiscuous == plan.AsksNo &&
			r.fact("vm").Promiscuous == plan.AsksYes
	})
	if _, err := r.reconnect(spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01",
		Monitor: spec.Monitor{Socket: path}}); err != nil {
		t.Fatal(err)
	}
	if p := r.Active().Problems[id("vm")]; p.Code != problem.AdapterAmbiguous || !r.fact("vm").SeenMAC.IsZero() {
		t.Errorf("without nic: %q, %+v", p, r.fact("vm"))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.conns) != 1 {
		t.Errorf("%d connections", len(q.conns))
	}
}

// A manager connects the port of an adapter before it plugs the adapter in; QEMU reports no event then.
func TestD2_AnAdapterThatIsPluggedAfterItsPortIsSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:11", false))
	r := monitoredPort(t, path)
	r.dev.tap("tap1")
	err := r.connect(spec.Port{Name: "vm/1", PortGroup: "web", Device: "tap1", MAC: "52:54:00:00:00:12",
		Monitor: spec.Monitor{Socket: path, NIC: "net1"}})
	if err != nil {
		t.Fatal(err)
	}
	r.until("the adapter is missed", func() bool {
		return r.Active().Problems[id("vm/1")].Code == problem.AdapterUnknown
	})
	q.isReadAgain(t, 4)
	q.mu.Lock()
	q.filter = strings.Replace(nicFilter("52:54:00:00:00:12", false), "net0", "net1", 1)
	q.mu.Unlock()
	r.until("it is seen", func() bool { return r.fact("vm/1").SeenMAC.String() == "52:54:00:00:00:12" })
}

func TestBrokenMonitorIsToldInOurOwnWords(t *testing.T) {
	for answer, want := range map[string]string{
		"[]":                                  "does not show the adapter",
		`"malicious\u001b[31m text"`:          "gave no answer that could be read",
		strings.Repeat("[", 99) + "malicious": "closed the connection",
		`[{"name": "malicious", "main-mac": "malici"}]`: "gave no answer that could be read",
	} {
		path := filepath.Join(t.TempDir(), "qmp")
		newFakeQEMU(t, path, answer)
		r := monitoredPort(t, path)
		r.until(want, func() bool { return strings.Contains(r.Active().Problems[id("vm")].Text(), want) })
		if p := r.Active().Problems[id("vm")].Text(); strings.Contains(p, "malici") || !strings.Contains(p, path) {
			t.Errorf("%q", p)
		}
	}
}
