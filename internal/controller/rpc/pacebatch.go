package rpc

import (
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// reportBatch is what a host has reported in messages that wait, as one: the last report as a whole, what has changed
// since, and what was said about them. What is superseded is left out, so that it grows with the host's ports and not
// with how often it reports.
type reportBatch struct {
	said   *controllerv1.FollowSliceRequest // without report and change
	report *controllerv1.HostReport
	change *controllerv1.HostReportChange // without ports
	put    map[portKey]*controllerv1.HostPort
	gone   map[portKey]bool
	bytes  int // of the messages that it is made of, but for those before the last whole report
}

func newBatch() *reportBatch {
	return &reportBatch{said: &controllerv1.FollowSliceRequest{}, put: map[portKey]*controllerv1.HostPort{},
		gone: map[portKey]bool{}}
}

// sealed reports whether nothing may be added: an acknowledgement is about the reports before it.
func (b *reportBatch) sealed() bool { return b.said.GetAcknowledgement() != nil }

// add takes in a message of that size behind the others, and returns by how much the batch has grown.
func (b *reportBatch) add(m *controllerv1.FollowSliceRequest, size int) (grown int) {
	before := b.bytes
	b.bytes += size
	if r := m.GetReport(); r != nil {
		b.report, b.change, b.bytes = r, nil, proto.Size(b.said)+size
		clear(b.put)
		clear(b.gone)
	}
	if c := m.GetChange(); c != nil {
		b.change = &controllerv1.HostReportChange{Warnings: c.GetWarnings(), Switches: c.GetSwitches()}
		for _, k := range c.GetRemoved() {
			key := portKey{k.GetSwitch(), k.GetName()}
			delete(b.put, key)
			b.gone[key] = true
		}
		for _, p := range c.GetPut() {
			key := portKey{p.GetSwitch(), p.GetName()}
			delete(b.gone, key)
			b.put[key] = p
		}
	}
	b.said.Reported = max(b.said.GetReported(), m.GetReported())
	b.said.Connected = append(b.said.Connected, m.GetConnected()...)
	b.said.Acknowledgement = m.GetAcknowledgement()
	return b.bytes - before
}

// probe has a report where the batch has one, or a change.
func (b *reportBatch) probe() *controllerv1.FollowSliceRequest {
	return &controllerv1.FollowSliceRequest{Report: b.report, Change: b.change}
}

// message is all of it: a report comes before what has changed since.
func (b *reportBatch) message() *controllerv1.FollowSliceRequest {
	m := b.said
	if m.Report = b.report; b.change == nil {
		return m
	}
	m.Change = proto.CloneOf(b.change)
	for key := range b.gone {
		m.Change.Removed = append(m.Change.Removed, &controllerv1.HostPortKey{Switch: key.sw, Name: key.name})
	}
	for _, p := range b.put {
		m.Change.Put = append(m.Change.Put, p)
	}
	return m
}
