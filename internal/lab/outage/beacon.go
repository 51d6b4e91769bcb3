package outage

import (
	"context"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/report"
)

// probe is the guest whose team uses beacon probing.
const probe = "probe"

// beaconTime is how long packets are counted: the three seconds of silence that beacons wait for, and some time on both
// sides.
const beaconTime = 6 * time.Second

// beaconTries is how often a round is tried that a stalling machine makes void.
const beaconTries = 5

// beaconRound is a round in which packets of both directions were lost. When the machine stalls for seconds, beacons of
// a good uplink are missed too, and the port is elsewhere when the network fails, or it has moved before the first
// packet is sent: such a round says nothing, and is made again.
func (s *scene) beaconRound(ctx context.Context, m *measured) error {
	for try := 1; ; try++ {
		one := &measured{row: m.row}
		if err := s.beaconTry(ctx, one); err != nil {
			return err
		}
		if try == beaconTries || one.out.lost[0] > 0 && one.in.lost[0] > 0 {
			m.join(one)
			return nil
		}
	}
}

// join adds the rounds of another measurement of the same row.
func (m *measured) join(o *measured) {
	m.ports = max(m.ports, o.ports)
	m.took = append(m.took, o.took...)
	for _, d := range []struct{ to, from *direction }{{&m.out, &o.out}, {&m.in, &o.in}} {
		d.to.gap = append(d.to.gap, d.from.gap...)
		d.to.lost = append(d.to.lost, d.from.lost...)
		d.to.when = append(d.to.when, d.from.when...)
	}
	m.duplicated += o.duplicated
	m.reordered += o.reordered
	m.sent += o.sent
}

// beaconTry makes the network behind uplink1 fail while its link stays up, and repairs it.
func (s *scene) beaconTry(ctx context.Context, m *measured) error {
	if err := s.uses(ctx, probe, "uplink1"); err != nil {
		return err
	}
	if err := s.answers(ctx, probe); err != nil {
		return err
	}
	if err := s.count(ctx, m, beaconTime); err != nil {
		return err
	}
	if err := s.uses(ctx, probe, "uplink2"); err != nil {
		return err
	}
	m.ports = 1
	if err := s.set(far, "up", true); err != nil {
		return err
	}
	return s.uses(ctx, probe, "uplink1")
}

// uses waits until a port uses that uplink.
func (s *scene) uses(ctx context.Context, port, uplink string) error {
	return s.await(ctx, port+" uses "+uplink, func(st *api.State) bool { return by(st, port) == uplink })
}

// by is the uplink that a port uses, "" for none or several.
func by(st *api.State, port string) string {
	for _, p := range st.Ports {
		if p.Name == port && p.State == api.Up && len(p.Uplinks) == 1 {
			return p.Uplinks[0]
		}
	}
	return ""
}

// reportBeacon adds the row, with the columns that it shares with the load's.
func (m *measured) reportBeacon(r *report.Report) {
	r.Rows = append(r.Rows, teamingRow(m.row.name, m.row.event.String(), map[string]any{
		"gap_out_s": spread(m.out.gap), "gap_in_s": spread(m.in.gap), "lost_out": spread(m.out.lost),
		"lost_in":    spread(m.in.lost),
		"duplicated": m.duplicated,
	}))
	for _, d := range []struct {
		name string
		gap  []float64
	}{{"out", m.out.gap}, {"in", m.in.gap}} {
		r.Budgets = append(r.Budgets, report.Hold(beaconRow+": gap "+d.name, report.Summarise(d.gap).Median,
			report.Seconds, report.AtMost, BeaconBudget))
	}
	r.Notes = append(r.Notes,
		"Beacon: the switch behind uplink1 loses its way to the rest of the network, and the host's link stays up. "+
			"Beacons leave every second, and three have to be missed; nothing but beacons sees such a failure.")
}

// teamingRow is a row with all columns of the experiment; values that are not given were not measured.
func teamingRow(name, event string, values map[string]any) report.Row {
	row := report.Row{{Name: "name", Title: "row", Value: name}, {Name: "event", Value: event}}
	for _, c := range []report.Field{
		{Name: "moved_s", Title: "moved after", Unit: report.Seconds},
		{Name: "gap_out_s", Title: "gap out", Unit: report.Seconds},
		{Name: "gap_in_s", Title: "gap in", Unit: report.Seconds},
		{Name: "lost_out", Title: "lost out", Unit: report.Count, Brief: true},
		{Name: "lost_in", Title: "lost in", Unit: report.Count, Brief: true},
		{Name: "duplicated", Title: "dup", Unit: report.Count},
		{Name: "before_bps", Title: "before", Unit: report.BitsPerSecond},
		{Name: "after_bps", Title: "after", Unit: report.BitsPerSecond},
		{Name: "gain", Unit: report.Ratio},
	} {
		c.Value = values[c.Name]
		row = append(row, c)
	}
	return row
}
