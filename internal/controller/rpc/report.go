package rpc

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/controller/fanout"
)

// report is what a host has reported. A cluster has hundreds of thousands of ports, which are hardly ever looked at:
// they are kept as they came over the wire, which takes a fifth of the memory and nothing of the garbage collector's
// time. nil is that of a host which has reported nothing yet. It does not change; a change makes another one.
type report struct {
	wire     []byte // of each port its length, and its message
	ports    int
	warnings []string
	// shut is how many of the ports let no frames pass, by switch, once that was counted.
	shut    map[string]int32
	counted bool
}

// portsShut is how many of the ports are blocked or pending, by switch. They are counted at the first call: a rollout
// asks again and again for all hosts. The caller holds the fleet's lock.
func (r *report) portsShut() map[string]int32 {
	if r == nil {
		return nil
	}
	if r.counted {
		return r.shut
	}
	for p := range r.all() {
		if st := p.GetState(); !p.GetAbsent() && (st == string(api.Blocked) || st == string(api.Pending)) {
			if r.shut == nil {
				r.shut = map[string]int32{}
			}
			r.shut[p.GetSwitch()]++
		}
	}
	r.counted = true
	return r.shut
}

// newReport keeps the ports of a list for which keep is true.
func newReport(ports []*controllerv1.HostPort, warnings []string, keep func(*controllerv1.HostPort) bool) (*report,
	error) {
	return (&report{warnings: warnings}).with(ports, keep)
}

// with is the report with these ports appended, as far as keep is true.
func (r *report) with(ports []*controllerv1.HostPort, keep func(*controllerv1.HostPort) bool) (*report, error) {
	// One allocation of the right size: it stays for long.
	size, fits := len(r.wire), make([]int, len(ports))
	for i, p := range ports {
		if fits[i] = -1; keep(p) {
			fits[i] = proto.Size(p)
			size += protowire.SizeBytes(fits[i])
		}
	}
	next := &report{wire: append(make([]byte, 0, size), r.wire...), ports: r.ports, warnings: r.warnings}
	for i, p := range ports {
		if fits[i] < 0 {
			continue
		}
		next.wire = protowire.AppendVarint(next.wire, uint64(fits[i]))
		var err error
		if next.wire, err = (proto.MarshalOptions{}).MarshalAppend(next.wire, p); err != nil {
			return nil, err
		}
		next.ports++
	}
	return next, nil
}

// changed is the report after a change; of the ports that it brings, those are left out for which keep is false.
func (r *report) changed(c *controllerv1.HostReportChange, keep func(*controllerv1.HostPort) bool) (*report, error) {
	gone := map[portKey]bool{}
	for _, k := range c.GetRemoved() {
		gone[portKey{k.GetSwitch(), k.GetName()}] = true
	}
	for _, p := range c.GetPut() {
		gone[portKey{p.GetSwitch(), p.GetName()}] = true
	}
	left := &report{warnings: c.GetWarnings()}
	if len(gone) == 0 && r != nil {
		left.wire, left.ports = r.wire, r.ports
	} else {
		left.wire = make([]byte, 0, r.size())
		for wire, body := range r.bodies() {
			if sw, name := keyOf(body); !gone[portKey{string(sw), string(name)}] {
				left.wire = append(left.wire, wire...)
				left.ports++
			}
		}
	}
	return left.with(c.GetPut(), keep)
}

// warned is the report with these warnings, beside those that it has, until the host reports anew.
func (r *report) warned(lines []string) *report {
	next := report{}
	if r != nil {
		next = *r
	}
	next.warnings = slices.Clone(next.warnings)
	for _, line := range lines {
		if !slices.Contains(next.warnings, line) {
			next.warnings = append(next.warnings, line)
		}
	}
	if len(next.warnings) == len(r.GetWarnings()) {
		return r
	}
	return &next
}

// portKey is what a port is called on its host.
type portKey struct{ sw, name string }

// keyOf finds the port's key in its message, of which nothing else is read: a host with a thousand ports reports each
// time that one of them is another.
func keyOf(body []byte) (sw, name []byte) {
	for len(body) > 0 {
		number, kind, n := protowire.ConsumeTag(body)
		if n < 0 {
			return sw, name
		}
		size := protowire.ConsumeFieldValue(number, kind, body[n:])
		if size < 0 {
			return sw, name
		}
		if kind == protowire.BytesType {
			switch value, _ := protowire.ConsumeBytes(body[n:]); number {
			case switchField:
				sw = value
			case nameField:
				name = value
			}
		}
		body = body[n+size:]
	}
	return sw, name
}

// Fields of a port's message.
const switchField, nameField protowire.Number = 1, 2

// size is how many bytes the ports take.
func (r *report) size() int {
	if r == nil {
		return 0
	}
	return len(r.wire)
}

// bodies are the ports' messages, each with its part of the wire.
func (r *report) bodies() func(func(wire, body []byte) bool) {
	return func(yield func(wire, body []byte) bool) {
		if r == nil {
			return
		}
		for left := r.wire; len(left) > 0; {
			body, n := protowire.ConsumeBytes(left)
			if n < 0 || !yield(left[:n], body) { // it was made here, so it can be read
				return
			}
			left = left[n:]
		}
	}
}

// all are the ports.
func (r *report) all() func(func(*controllerv1.HostPort) bool) {
	return func(yield func(*controllerv1.HostPort) bool) {
		for _, body := range r.bodies() {
			p := &controllerv1.HostPort{}
			if proto.Unmarshal(body, p) != nil || !yield(p) {
				return
			}
		}
	}
}

// GetPorts are the ports.
func (r *report) GetPorts() []*controllerv1.HostPort {
	list := make([]*controllerv1.HostPort, 0, r.count())
	for p := range r.all() {
		list = append(list, p)
	}
	return list
}

// count is the number of ports.
func (r *report) count() int {
	if r == nil {
		return 0
	}
	return r.ports
}

// GetWarnings are those of the host.
func (r *report) GetWarnings() []string {
	if r == nil {
		return nil
	}
	return r.warnings
}

// message is the report for another controller; nil where there is none.
func (r *report) message() *controllerv1.HostReport {
	if r == nil {
		return nil
	}
	return &controllerv1.HostReport{Ports: r.GetPorts(), Warnings: r.warnings}
}

// usersOf are the ports in a port group.
func usersOf(r fanout.Report, sw, group string) (names []string) {
	if here, ok := r.(*report); ok {
		return here.users(sw, group)
	}
	for _, p := range r.GetPorts() {
		if p.GetSwitch() == sw && p.GetPortGroup() == group {
			names = append(names, p.GetName())
		}
	}
	return names
}

// users are the ports in a port group. Most hosts have none, which their bytes show without being read.
func (r *report) users(sw, group string) (names []string) {
	if r == nil || !bytes.Contains(r.wire, []byte(group)) {
		return nil
	}
	for p := range r.all() {
		if p.GetSwitch() == sw && p.GetPortGroup() == group {
			names = append(names, p.GetName())
		}
	}
	return slices.Clip(names)
}
