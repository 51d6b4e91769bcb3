package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
	"heddle/internal/observe/event"
)

// look reads the row's effects from the hosts.
func (s *scene) look(ctx context.Context, m *measured, before suffered, began time.Time) (err error) {
	n, err := s.news(ctx)
	if err != nil {
		return err
	}
	m.changes = n.changes
	if !n.blocked.IsZero() {
		m.took = n.blocked.Sub(began)
	}
	for _, h := range hosts() {
		if m.lags[h], err = s.lag(ctx, h); err != nil {
			return err
		}
	}
	if m.stations, err = s.stations(ctx); err != nil {
		return err
	}
	if m.blocked, err = s.blocked(ctx); err != nil {
		return err
	}
	if m.neighbours, m.routers, err = s.believed(); err != nil {
		return err
	}
	after, err := s.suffered(ctx)
	m.refused, m.came, m.hijacked = after.refused, after.came-before.came, after.went-before.went
	for reason, n := range before.refused {
		if m.refused[reason] -= n; m.refused[reason] == 0 {
			delete(m.refused, reason)
		}
	}
	return err
}

// lag is the state of a host's LAG.
type lag struct {
	used, partners, neighbours int
}

func (s *scene) lag(ctx context.Context, host string) (l lag, err error) {
	st, err := s.lab.Agent(host).State(ctx)
	if err != nil {
		return l, err
	}
	partners := map[string]bool{}
	for _, u := range st.Uplinks {
		if u.LAG != nil && u.LAG.Used && u.State == api.Up {
			l.used++
		}
		if u.LAG != nil && u.LAG.Partner != nil {
			partners[u.LAG.Partner.System] = true
		}
		if u.LLDP != nil {
			l.neighbours += len(u.LLDP.Neighbours)
		}
	}
	l.partners = len(partners)
	return l, nil
}

// news is a summary of the events.
type news struct {
	changes int       // of links and neighbours
	blocked time.Time // when the first port was blocked because of a loop
}

// news reads the events since the previous call, on all hosts.
func (s *scene) news(ctx context.Context) (n news, err error) {
	for _, h := range hosts() {
		err := s.lab.Agent(h).Events(ctx, api.Follow{After: s.seen[h], Last: -1, NoFollow: true},
			func(b api.Events) error {
				for _, e := range b.Events {
					s.seen[h] = max(s.seen[h], e.Seq)
					switch {
					case slices.Contains([]event.Kind{event.Link, event.Failover, event.Neighbour}, e.Kind):
						n.changes++
					case e.Kind == event.Loop && e.To == "blocked" && n.blocked.IsZero():
						n.blocked = e.Time
					}
				}
				return nil
			})
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// suffered is what came in from the attackers, how many frames were dropped by reason, and how many frames with one
// receiver reached them.
type suffered struct {
	came    uint64
	went    uint64
	refused map[string]uint64
}

func (s *scene) suffered(ctx context.Context) (n suffered, err error) {
	n.refused = map[string]uint64{}
	all, err := s.lab.Agent(attacked).Stats(ctx)
	if err != nil {
		return n, err
	}
	for _, p := range all {
		// The name of a guest's second port ends with a 2.
		if _, ok := attackers()[strings.TrimSuffix(p.Name, "2")]; !ok {
			continue
		}
		n.came += stats.Of(&p).PacketsIn
		for _, c := range p.Counters {
			if c.Name == "packetsOutUnicast" {
				n.went += c.Value
			}
		}
		for _, d := range p.Drops {
			n.refused[d.Reason] += d.Value
		}
	}
	return n, nil
}

// stationsEach is how many addresses the guest with stations sends from before a row's attack, and how many new ones
// after it.
const stationsEach = 16

// speak makes the stations of the row send: those from before the attack, or those from after it.
func (s *scene) speak(after int) error {
	for i := range stationsEach {
		from := station(byte(s.row), after*stationsEach+i)
		f := slices.Concat(slices.Repeat([]byte{0xff}, 6), from[:], experimental())
		if err := s.senders[nest].send(f); err != nil {
			return fmt.Errorf("guest %s: %w", nest, err)
		}
	}
	return nil
}

// settleTime limits how long a frame may be on its way.
const settleTime = 2 * time.Second

// stations counts the row's stations whose location the switch knows.
func (s *scene) stations(ctx context.Context) (n int, err error) {
	for end := time.Now().Add(settleTime); ; {
		all, err := s.lab.Agent(attacked).MACs(ctx)
		if err != nil {
			return 0, err
		}
		n = 0
		for i := range 2 * stationsEach {
			mac := station(byte(s.row), i).String()
			if slices.ContainsFunc(all, func(m api.MAC) bool {
				return m.MAC == mac && m.Port == nest &&
					m.Kind == "learned"
			}) {
				n++
			}
		}
		if n == 2*stationsEach || time.Now().After(end) {
			return n, nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
}

// blocked are the blocked ports.
func (s *scene) blocked(ctx context.Context) (names []string, err error) {
	st, err := s.lab.Agent(attacked).State(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range st.Ports {
		if p.State == api.Blocked {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// fix unblocks the ports, and waits until they are in service again.
func (s *scene) fix(ctx context.Context, ports []string) error {
	for _, p := range ports {
		if _, err := s.lab.Agent(attacked).Block(ctx, api.Block{Port: p}); err != nil {
			return err
		}
	}
	err := s.await(ctx, "a port stays blocked though its loop is gone", func(ctx context.Context) (bool, error) {
		left, err := s.blocked(ctx)
		return err == nil && len(left) == 0, err
	})
	if err != nil {
		return err
	}
	_, err = s.news(ctx)
	return err
}

// bridgeName is what the guest calls the bridge of its adapters.
const bridgeName = "br0"

// bridge makes the guest bridge its two adapters; "" means no guest.
func (s *scene) bridge(vm string) error {
	if vm == "" {
		return nil
	}
	return s.nodes[vm].Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = bridgeName
		br := &netlink.Bridge{LinkAttrs: attrs}
		if err := netlink.LinkAdd(br); err != nil {
			return fmt.Errorf("make bridge %s: %w", bridgeName, err)
		}
		for _, name := range []string{"eth0", "eth1"} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return fmt.Errorf("find device %s: %w", name, err)
			}
			if err := netlink.LinkSetMaster(l, br); err != nil {
				return fmt.Errorf("put %s into bridge %s: %w", name, bridgeName, err)
			}
		}
		return netlink.LinkSetUp(br)
	})
}

// unbridge undoes bridge.
func (s *scene) unbridge(vm string) error {
	if vm == "" {
		return nil
	}
	return s.nodes[vm].Do(func() error {
		l, err := netlink.LinkByName(bridgeName)
		if err != nil {
			return fmt.Errorf("find bridge %s: %w", bridgeName, err)
		}
		return netlink.LinkDel(l)
	})
}
