package advise

import "heddle/internal/api"

// Since returns the difference between two readings, one entry for each of now; counters that were reset meanwhile, or
// did not exist before, count from 0.
func Since(before, now []api.Stats) []api.Stats {
	type key struct{ sw, name string }
	was := make(map[key]*api.Stats, len(before))
	for i := range before {
		was[key{before[i].Switch, before[i].Name}] = &before[i]
	}
	out := make([]api.Stats, len(now))
	for i, s := range now {
		out[i] = s
		if b := was[key{s.Switch, s.Name}]; b != nil && b.PortGroup == s.PortGroup && !anew(b.Counters, s.Counters) {
			out[i].Counters, out[i].Extra = less(s.Counters, b.Counters), less(s.Extra, b.Extra)
			out[i].Drops, out[i].Refused = lessReasons(s.Drops, b.Drops), lessReasons(s.Refused, b.Refused)
			out[i].Device, out[i].Peer = lessLosses(s.Device, b.Device), lessLosses(s.Peer, b.Peer)
		}
	}
	return out
}

// anew reports whether counters went down.
func anew(before, now []api.Counter) bool {
	for i := range now {
		if i < len(before) && now[i].Value < before[i].Value {
			return true
		}
	}
	return false
}

// macsLearned is a present number, and not a sum like the other counters.
const macsLearned = "macsLearned"

func less(now, before []api.Counter) []api.Counter {
	out := make([]api.Counter, len(now))
	for i, c := range now {
		out[i] = c
		for _, b := range before {
			if b.Name == c.Name && c.Name != macsLearned {
				out[i].Value = diff(c.Value, b.Value)
			}
		}
	}
	return out
}

func lessReasons(now, before []api.ReasonNo) (out []api.ReasonNo) {
	was := reasonsOf(before)
	for _, r := range now {
		if n := diff(r.Value, was[r.Reason]); n > 0 {
			out = append(out, api.ReasonNo{Reason: r.Reason, Value: n})
		}
	}
	return out
}

func lessLosses(now, before *api.DeviceLosses) *api.DeviceLosses {
	if now == nil || before == nil || now.Device != before.Device {
		return now
	}
	return &api.DeviceLosses{Device: now.Device, RxDropped: diff(now.RxDropped, before.RxDropped),
		TxDropped: diff(now.TxDropped, before.TxDropped),
		RxErrors:  diff(now.RxErrors, before.RxErrors), TxErrors: diff(now.TxErrors, before.TxErrors),
		RxMissed: diff(now.RxMissed, before.RxMissed), RxFrameErrors: diff(now.RxFrameErrors, before.RxFrameErrors)}
}

// diff returns a − b; 0 if the counter was reset.
func diff(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}
