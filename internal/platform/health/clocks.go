package health

import (
	"fmt"
	"slices"
	"time"

	"heddle/internal/api"
	"heddle/internal/identity"
)

// Clocks are those that a controller's is held against before it makes certificates: by how much each is ahead of it.
type Clocks struct {
	Controllers, Hosts []time.Duration
}

// Off is how far a controller's clock is from those of most others.
type Off struct {
	// By is by how much the others are ahead; less than 0 where they are behind.
	By time.Duration
	// Hosts: the others are hosts, and not controllers. Alone: it is one host.
	Hosts, Alone bool
}

// String is what the clock is, for people.
func (o Off) String() string {
	word, whose := "ahead of", "other controllers"
	if o.By > 0 {
		word = "behind"
	}
	if o.Hosts {
		whose = "hosts that are connected"
	}
	text := fmt.Sprintf("%s %s those of most %s", o.By.Abs().Round(time.Minute), word, whose)
	if o.Alone {
		text += ", which is one"
	}
	if !o.Hosts && o.By < 0 {
		text += ", which would refuse them"
	}
	return text
}

// leastAgainst is how many hosts it takes to say that a controller's clock is wrong: a single one may lie.
const leastAgainst = 2

// Against reports whether other clocks say that the controller's is wrong by more than a day, which is what
// certificates allow for: those of most other controllers, each by itself. Hosts are asked only where no other
// controller says anything: those of most, and of two at least, by about the same time. One host that lies has no say
// beside a controller, and none about the certificates of other hosts.
func (c Clocks) Against() (off Off, wrong bool) {
	off, wrong = c.Doubted()
	return off, wrong && !off.Alone
}

// Doubted reports the same, and also where a single host says so, beside which nobody says anything: one of the two
// clocks is wrong, and it is not known which. Then nothing is done that could not be taken back, and that host's own
// certificate is not renewed.
func (c Clocks) Doubted() (off Off, wrong bool) {
	if by, ahead := TooFarAhead(c.Controllers); ahead {
		return Off{By: -by}, true
	}
	mirrored := make([]time.Duration, len(c.Controllers))
	for i, d := range c.Controllers {
		mirrored[i] = -d
	}
	if by, behind := TooFarAhead(mirrored); behind {
		return Off{By: by}, true
	}
	if len(c.Controllers) > 0 || len(c.Hosts) == 0 {
		return off, false
	}
	hosts := slices.Sorted(slices.Values(c.Hosts))
	middle, alike := hosts[len(hosts)/2], 0
	for _, d := range hosts {
		if (d - middle).Abs() <= identity.Backdate {
			alike++
		}
	}
	return Off{By: middle, Hosts: true, Alone: alike < leastAgainst},
		middle.Abs() > identity.Backdate && 2*alike > len(hosts)
}

// NoCertificates says that a controller makes no certificates for want of a clock that others agree with.
func NoCertificates(c Clocks) (api.HealthFinding, bool) {
	off, wrong := c.Doubted()
	switch {
	case !wrong:
		return api.HealthFinding{}, false
	case off.Alone:
		return finding("clock", api.HealthWrong, "this controller's clock is "+off.String()+": one of the two is "+
			"wrong. That host's certificate is not renewed meanwhile, those of others are",
			"correct the clock that is wrong; if the host is not to be trusted: heddle host remove"), true
	}
	return finding("clock", api.HealthWrong, "this controller's clock is "+off.String()+": it makes no certificates, "+
		"so that no host joins or renews its own here", "correct the clock that is wrong"), true
}
