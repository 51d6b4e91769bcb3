package health

import (
	"testing"
	"time"
)

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
