package impact

import (
	"fmt"
	"math/rand/v2"
	"testing"

	agentv1 "heddle/api/heddle/agent/v1"
)

// 2500 hosts that each say as much as a host may make an answer of bounded size: with the most frames, wherever they
// come from, also if two controllers join their parts. What is left out is counted.
func TestSum_KeepsTheHeaviestOfAFleet(t *testing.T) {
	const hosts, each = 2500, 128
	order := rand.New(rand.NewPCG(1, 2)).Perm(hosts)
	var here, there, all Sum
	for i, n := range order {
		one := &agentv1.Foreseen{Looked: 4096, Left: 1, Counted: 2, More: 3}
		for k := range each {
			one.Losses = append(one.Losses, &agentv1.ForeseenLoss{Port: fmt.Sprint(k), Frames: uint64(n*each + k)})
		}
		s := &here
		if i%2 == 1 {
			s = &there
		}
		s.Add(fmt.Sprintf("esx%d", n), one)
		if len(s.out.GetLosses()) > 2*MostLosses+each {
			t.Fatalf("it holds %d losses", len(s.out.GetLosses()))
		}
	}
	for i := range 100 {
		there.Lack(fmt.Sprintf("away%d", i), "it is not connected")
	}
	all.Join(here.Answer())
	all.Join(there.Answer())
	out := all.Answer()
	if out.GetHosts() != hosts || out.GetLooked() != 4096*hosts || out.GetLeft() != hosts ||
		out.GetCounted() != 2*hosts || out.GetMore() != 3*hosts+hosts*each-MostLosses {
		t.Errorf("%d hosts, looked %d, left %d, counted %d, more %d", out.GetHosts(), out.GetLooked(), out.GetLeft(),
			out.GetCounted(), out.GetMore())
	}
	if len(out.GetUnasked()) != MostUnasked || out.GetUnaskedMore() != 100-MostUnasked {
		t.Errorf("%d unasked and %d more", len(out.GetUnasked()), out.GetUnaskedMore())
	}
	for i, l := range out.GetLosses() {
		if want := uint64(hosts*each - 1 - i); l.GetLoss().GetFrames() != want {
			t.Fatalf("loss %d has %d frames, want %d", i, l.GetLoss().GetFrames(), want)
		}
	}
}
