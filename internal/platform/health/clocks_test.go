package health

import (
	"strings"
	"testing"
	"time"
)

// A single host contradicts the controller: it has no say about certificates of others, and what can't be taken back
// waits all the same.
func TestS188_OneHostAloneIsADoubtAndNoMore(t *testing.T) {
	const far = 30 * 24 * time.Hour
	for _, c := range []struct {
		name             string
		clocks           Clocks
		doubted, against bool
	}{
		{"no host", Clocks{}, false, false},
		{"the only host", Clocks{Hosts: []time.Duration{far}}, true, false},
		{"the only host agrees", Clocks{Hosts: []time.Duration{time.Hour}}, false, false},
		{"one of two", Clocks{Hosts: []time.Duration{0, far}}, false, false},
		{"two that contradict each other", Clocks{Hosts: []time.Duration{-far, far}}, false, false},
		{"two of two", Clocks{Hosts: []time.Duration{far, far}}, true, true},
		{"the only host, beside a controller", Clocks{Controllers: []time.Duration{0},
			Hosts: []time.Duration{far}}, false, false},
		{"the only other controller", Clocks{Controllers: []time.Duration{far}}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			off, doubted := c.clocks.Doubted()
			_, against := c.clocks.Against()
			if doubted != c.doubted || against != c.against {
				t.Errorf("doubted %v, against %v", doubted, against)
			}
			if found, is := NoCertificates(c.clocks); is != c.doubted ||
				is && strings.Contains(found.Text, "makes no certificates") != c.against {
				t.Errorf("it says %q", found.Text)
			}
			if doubted && !against && off.String() != "720h0m0s behind those of most hosts that are connected, "+
				"which is one" {
				t.Errorf("the clock is %s", off)
			}
		})
	}
}

// Hosts have a say about a controller's clock only where no other controller has.
func TestS146_HostsAreAskedAboutClocksWhereNoOtherControllerIs(t *testing.T) {
	const far = 30 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		clocks Clocks
		wrong  bool
	}{
		{"alone, with no host", Clocks{}, false},
		{"alone, most hosts contradict", Clocks{Hosts: []time.Duration{far, far, 0}}, true},
		{"alone, one of several lies", Clocks{Hosts: []time.Duration{far, 0, 0}}, false},
		{"another controller agrees, the only host lies",
			Clocks{Controllers: []time.Duration{0}, Hosts: []time.Duration{far}}, false},
		{"another controller agrees, most hosts lie",
			Clocks{Controllers: []time.Duration{time.Hour, 0}, Hosts: []time.Duration{-far, -far, 0}}, false},
		{"other controllers contradict, hosts agree",
			Clocks{Controllers: []time.Duration{far, far}, Hosts: []time.Duration{0, 0}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if off, wrong := c.clocks.Against(); wrong != c.wrong {
				t.Errorf("%v, %v", off, wrong)
			}
		})
	}
}
