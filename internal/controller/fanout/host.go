package fanout

import (
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/platform/peers"
)

// Host is a host as this controller has heard of it from the host itself.
type Host struct {
	ID, Name string
	Labels   map[string]string
	// Here: it is connected to this controller. Since is when the connection began, or ended.
	Here  bool
	Since time.Time
	// Report is what it reported last; nil for nothing.
	Report Report
}

// Report is what a host has reported, to this controller or to another one.
type Report interface {
	GetPorts() []*controllerv1.HostPort
	GetWarnings() []string
}

// reportBy is the report that another controller sent, nil for none.
func reportBy(r *controllerv1.HostReport) Report {
	if r == nil {
		return nil
	}
	return r
}

// ReportOf is what a host reported last, to whichever controller; nil for nothing. connected: it is connected to one.
func (e *Answers) ReportOf(h Host) (report Report, connected bool) {
	there := e.Hosts[h.ID]
	switch {
	case h.Here && h.Report != nil:
		return h.Report, true
	case there.GetConnected():
		return reportBy(there.GetReport()), !there.GetHost().GetStale()
	case there.GetReport() != nil && (h.Report == nil || there.GetHost().GetSince().AsTime().After(h.Since)):
		return there.GetReport(), false
	}
	return h.Report, false
}

// Runs is the adapter whose port that is, if it runs there: not while its guest waits elsewhere, nor without a device.
func Runs(p *controllerv1.HostPort) (part.Adapter, bool) {
	return part.AdapterOf(p.GetVm(), p.GetAdapter()), p.GetVm() != "" && !p.GetWaits() && !p.GetAbsent()
}

// LastSaid is whether a host said last that an adapter runs there; known is false where nobody remembers a word of it.
func (e *Answers) LastSaid(h Host, n part.Adapter) (runs, known bool) {
	report, _ := e.ReportOf(h)
	if report == nil {
		return false, false
	}
	for _, p := range report.GetPorts() {
		if of, here := Runs(p); here && of == n {
			return true, true
		}
	}
	return false, true
}

// LostFor is for how long a host has been without a controller for certain: since the last one that had it saw it go.
// This controller counts from when it knows the host, and while others do not answer from when they began not to:
// silent says since when these controllers have not answered.
func (e *Answers) LostFor(h Host, silent func(away []string) time.Time) time.Duration {
	since := h.Since
	if at := e.Hosts[h.ID]; at != nil && !at.GetConnected() {
		since = peers.Later(since, at.GetHost().GetSince().AsTime())
	}
	if len(e.Away) > 0 {
		since = peers.Later(since, silent(e.Away))
	}
	return max(0, time.Since(since))
}
