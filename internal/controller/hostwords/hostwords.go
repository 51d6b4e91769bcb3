package hostwords

import (
	"fmt"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/spec/printable"
)

// What a host says in words stands in lists, in the log, and in what other controllers are told. It is bounded before
// anything looks at it: one host takes no room that is meant for all.
const (
	// mostAgent is how long the version of a host's program may be, mostStart the number of its start, and MostName a
	// name, in bytes.
	mostAgent = 64
	mostStart = 64
	MostName  = 256
	// mostLines is how many lines a host's warnings or problems may have, mostLine how long each may be, and mostWords
	// all of them together, in bytes.
	mostLines = 200
	mostLine  = 500
	mostWords = 32 << 10
)

// Bounded is a message of a host with words of a bounded length.
func Bounded(m *controllerv1.FollowSliceRequest) *controllerv1.FollowSliceRequest {
	if h := m.GetHello(); h != nil {
		h.Agent, h.TogetherId = printable.Short(h.GetAgent(), mostAgent), printable.Short(h.GetTogetherId(), MostName)
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
		q.Switch, q.PortGroup = printable.Short(q.GetSwitch(), MostName), printable.Short(q.GetPortGroup(), MostName)
		q.Vm, q.Adapter = printable.Short(q.GetVm(), MostName), printable.Short(q.GetAdapter(), MostName)
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
