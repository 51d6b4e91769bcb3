package impact

import (
	"bytes"
	"cmp"
	"slices"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
)

// Bounds of an answer.
const (
	// MostLosses is how many losses are listed, of all hosts.
	MostLosses = 256
	// MostUnasked is how many hosts are named that did not answer.
	MostUnasked = 64
)

// Sum is the answer so far. Its zero value is ready for use.
type Sum struct{ out controllerv1.ForeseenByHosts }

// Add adds what a host said.
func (s *Sum) Add(host string, of *agentv1.Foreseen) {
	s.out.Hosts++
	s.out.Looked, s.out.Left, s.out.Counted = s.out.Looked+of.GetLooked(), s.out.Left+of.GetLeft(),
		s.out.Counted+of.GetCounted()
	s.out.More += of.GetMore()
	for _, l := range of.GetLosses() {
		s.out.Losses = append(s.out.Losses, &controllerv1.HostLoss{Host: host, Loss: l})
	}
	if len(s.out.GetLosses()) > 2*MostLosses {
		s.cut()
	}
}

// Lack adds a host that did not answer.
func (s *Sum) Lack(host, why string) {
	if len(s.out.GetUnasked()) == MostUnasked {
		s.out.UnaskedMore++
		return
	}
	s.out.Unasked = append(s.out.Unasked, &controllerv1.HostProblem{Host: host, Problems: []string{why}})
}

// Join adds what another controller has joined.
func (s *Sum) Join(of *controllerv1.ForeseenByHosts) {
	s.out.Hosts += of.GetHosts()
	s.out.Looked, s.out.Left, s.out.Counted = s.out.Looked+of.GetLooked(), s.out.Left+of.GetLeft(),
		s.out.Counted+of.GetCounted()
	s.out.More += of.GetMore()
	s.out.Losses = append(s.out.Losses, of.GetLosses()...)
	for _, u := range of.GetUnasked() {
		if len(s.out.GetUnasked()) == MostUnasked {
			s.out.UnaskedMore++
		} else {
			s.out.Unasked = append(s.out.Unasked, u)
		}
	}
	s.out.UnaskedMore += of.GetUnaskedMore()
	s.cut()
}

// cut keeps the losses with the most frames.
func (s *Sum) cut() {
	slices.SortStableFunc(s.out.GetLosses(), func(a, b *controllerv1.HostLoss) int {
		return cmp.Or(cmp.Compare(b.GetLoss().GetFrames(), a.GetLoss().GetFrames()),
			cmp.Compare(a.GetHost(), b.GetHost()), cmp.Compare(a.GetLoss().GetPort(), b.GetLoss().GetPort()),
			bytes.Compare(a.GetLoss().GetMac(), b.GetLoss().GetMac()))
	})
	if more := len(s.out.GetLosses()) - MostLosses; more > 0 {
		s.out.Losses, s.out.More = s.out.GetLosses()[:MostLosses], s.out.GetMore()+int32(more)
	}
}

// Answer is the whole answer.
func (s *Sum) Answer() *controllerv1.ForeseenByHosts {
	s.cut()
	slices.SortStableFunc(s.out.GetUnasked(), func(a, b *controllerv1.HostProblem) int {
		return cmp.Compare(a.GetHost(), b.GetHost())
	})
	return &s.out
}
