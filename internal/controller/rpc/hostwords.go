package rpc

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/spec/printable"
)

// What a host says in words stands in lists, in the log, and in what other controllers are told. It is bounded before
// anything looks at it: one host takes no room that is meant for all.
const (
	// mostAgent is how long the version of a host's program may be, mostStart the number of its start, and mostName a
	// name, in bytes.
	mostAgent = 64
	mostStart = 64
	mostName  = 256
	// mostLines is how many lines a host's warnings or problems may have, mostLine how long each may be, and mostWords
	// all of them together, in bytes.
	mostLines = 200
	mostLine  = 500
	mostWords = 32 << 10
	// lineEvery and lineBurst are how many lines of the log are about what one host says.
	lineEvery = 2 * time.Second
	lineBurst = 20
)

// bounded is a message of a host with words of a bounded length.
func bounded(m *controllerv1.FollowSliceRequest) *controllerv1.FollowSliceRequest {
	if h := m.GetHello(); h != nil {
		h.Agent, h.TogetherId = printable.Short(h.GetAgent(), mostAgent), printable.Short(h.GetTogetherId(), mostName)
		h.Start = h.GetStart()[:min(len(h.GetStart()), mostStart)]
		boundReport(h.GetReport())
	}
	boundReport(m.GetReport())
	if c := m.GetChange(); c != nil {
		c.Warnings = boundLines(c.GetWarnings())
	}
	if a := m.GetAcknowledgement(); a != nil {
		a.Problems, a.Warnings = boundLines(a.GetProblems()), boundLines(a.GetWarnings())
	}
	if p := m.GetPrepared(); p != nil {
		p.Problems = boundLines(p.GetProblems())
	}
	for _, q := range m.GetClaims() { // what is cut is no name of anything, and is refused as such
		q.Switch, q.PortGroup = printable.Short(q.GetSwitch(), mostName), printable.Short(q.GetPortGroup(), mostName)
		q.Vm, q.Adapter = printable.Short(q.GetVm(), mostName), printable.Short(q.GetAdapter(), mostName)
	}
	return m
}

func boundReport(r *controllerv1.HostReport) {
	if r != nil {
		r.Warnings = boundLines(r.GetWarnings())
	}
}

// boundLines are the first lines, and how many more there are.
func boundLines(lines []string) (kept []string) {
	size := 0
	for i, line := range lines {
		line = printable.Short(line, mostLine)
		if size += len(line); i == mostLines || size > mostWords {
			return append(kept, fmt.Sprintf("and %s", printable.Count(len(lines)-i, "more line", "more lines")))
		}
		kept = append(kept, line)
	}
	return kept
}

// talk bounds how many lines of the log one host has written.
type talk struct {
	*rate.Limiter
	quiet int
}

func newTalk() talk { return talk{Limiter: rate.NewLimiter(rate.Every(lineEvery), lineBurst)} }

// may reports whether another line is written, and how many were not since the last one. The caller holds the lock.
func (t *talk) may() (others int, is bool) {
	if !t.Allow() {
		t.quiet++
		return 0, false
	}
	others, t.quiet = t.quiet, 0
	return others, true
}
