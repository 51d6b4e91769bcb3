package cli

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// everywhere captures on all hosts that have what is asked for, until it is enough, the time is over, or the user ends
// it. A host that is lost meanwhile is named; the others go on.
func (f *capture) everywhere(c *cobra.Command, t *target) (err error) {
	if strings.TrimSpace(f.filter) != "" {
		if f.ask.Filter, err = f.compile(c.Context(), f.filter); err != nil {
			return err
		}
	}
	asks, away, err := askHosts(c, t, func(t *target) (api.Capture, error) {
		s, err := t.state(c)
		if err != nil {
			return api.Capture{}, err
		}
		return f.of(t.host, s)
	})
	if err != nil {
		return err
	}
	out, err := f.output()
	if err != nil {
		return err
	}
	g := &gathering[sighting]{put: out.frame, at: func(s sighting) time.Time { return s.Time }}
	sessions, err := f.sessions(t, asks, f.tally(g.take))
	if err != nil {
		return errors.Join(err, out.close(api.CaptureCounts{}))
	}
	errs := make([]error, len(sessions))
	var running sync.WaitGroup
	for i, s := range sessions {
		running.Go(func() { errs[i] = s.follow(c.Context()) })
	}
	running.Wait()
	return f.finish(sessions, errs, g, out, away)
}

// sessions are the captures on the hosts.
func (f *capture) sessions(t *target, asks []said[api.Capture], all *tally) (list []*captureSession, err error) {
	for _, a := range asks {
		client, err := t.on(a.host).client()
		if err != nil {
			return nil, err
		}
		list = append(list, f.session(a.host, client, a.answer, all))
	}
	return list, nil
}

// of is what is asked of one host: of the ports that are named, those that it has.
func (f *capture) of(host string, s *api.State) (api.Capture, error) {
	q := f.ask
	q.Ports, q.Uplinks = nil, nil
	here := func(names []string, has func(string) bool) (list []string) {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(name, host+":"); ok && has(rest) {
				name = rest
			}
			if has(name) {
				list = append(list, name)
			}
		}
		return list
	}
	q.Ports = here(f.ask.Ports, func(name string) bool { return hasEnd(s, name) == nil })
	q.Uplinks = here(f.ask.Uplinks, func(name string) bool { return hasUplink(s, f.ask.Switch, name) == nil })
	if len(f.ask.Ports)+len(f.ask.Uplinks) > 0 && len(q.Ports)+len(q.Uplinks) == 0 {
		if len(f.ask.Ports) > 0 {
			return q, hasEnd(s, f.ask.Ports[0])
		}
		return q, hasUplink(s, f.ask.Switch, f.ask.Uplinks[0])
	}
	return q, hasSwitch(s, f.ask.Switch)
}

// finish writes what is left, and says how it ended.
func (f *capture) finish(sessions []*captureSession, errs []error, g *gathering[sighting], out *captureOutput,
	away *absent) error {
	counts, begun := api.CaptureCounts{Ended: api.CaptureAsked}, false
	var refused error
	for i, s := range sessions {
		counts.Selected += s.counts.Selected
		counts.Lost += s.counts.Lost
		begun = begun || s.begun
		switch err := errs[i]; {
		case err == nil:
		case !s.begun && isMissing(err): // such as a VLAN that this host does not have
			refused = err
		default:
			away.add(s.host, err)
		}
	}
	err := errors.Join(g.flush(), out.close(counts))
	if begun && len(sessions) > 0 {
		summary(f.d.Stderr, sessions[0].tally.given, counts)
	} else if refused != nil && len(away.hosts) == 0 {
		return refused
	}
	return errors.Join(err, away.report(f.d))
}

// add takes in that a host does not answer.
func (a *absent) add(host string, why error) {
	a.hosts, a.why = append(a.hosts, api.FleetHost{Name: host}), append(a.why, why)
}
