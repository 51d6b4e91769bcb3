package stats

import (
	"fmt"
	"io"
	"strconv"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose/reasons"
	"heddle/internal/diagnose/stats"
	"heddle/internal/spec"
)

func statsOne(w io.Writer, d cli.Deps, s api.Stats, zero bool, host string) error {
	what, where := "port", ""
	if s.Uplink {
		what = "uplink"
	}
	if host != "" {
		where = " on host " + host
	}
	if _, err := fmt.Fprintf(w, "%s %s of switch %s%s\n\n", what, s.Name, s.Switch, where); err != nil {
		return err
	}
	tab := &cli.Table{Head: []string{"COUNTER", "VALUE"}, Right: map[int]bool{1: true}}
	lost := map[int]bool{} // rows of dropped frames
	tab.PaintRow = func(row, col int, text, padded string) string {
		if col == 1 && lost[row] && text != "0" {
			return d.Coloured(cli.Yellow, padded)
		}
		return padded
	}
	of := map[string]uint64{"packetsInDropped": stats.Filtered(s.Drops, s.Uplink),
		"packetsOutDropped": stats.Filtered(s.Refused, s.Uplink)}
	filtered := false
	for _, c := range append(append([]api.Counter{}, s.Counters...), s.Extra...) {
		if c.Value > 0 || zero {
			tab.Add(c.Name, strconv.FormatUint(c.Value, 10))
		}
		if n := of[c.Name]; n > 0 {
			filtered = true
			tab.Add("  of these filtered", strconv.FormatUint(n, 10))
		}
	}
	reasonRow := func(what string, r api.ReasonNo) {
		known, ok := abi.ParseReason(r.Reason)
		lost[len(tab.Rows)] = !ok || !reasons.ByDesign(known, s.Uplink)
		tab.Add(what+", "+r.Reason, strconv.FormatUint(r.Value, 10))
	}
	for _, r := range s.Drops {
		reasonRow("dropped", r)
	}
	for _, r := range s.Refused {
		reasonRow("refused", r)
	}
	addLosses(tab, "device", s.Device, zero, lost)
	if s.Uplink && s.Name == spec.TunnelName {
		addTunnelErrors(tab, s.Device, zero)
	}
	addLosses(tab, "its other end", s.Peer, zero, lost)
	if len(tab.Rows) == 0 {
		_, err := fmt.Fprintln(w, "all counters are 0 (--zero shows them)")
		return err
	}
	if err := tab.Write(w); err != nil || !filtered {
		return err
	}
	_, err := fmt.Fprint(w, `
filtered: duplicates that the checks of uplinks leave out, and frames for nobody
here. vSphere's counters have them among what is dropped. They are normal:
"heddle stats" has them as FILTERED.
`)
	return err
}

// addTunnelErrors says what the errors of a tunnel's device are: Linux counts no other ones there.
func addTunnelErrors(tab *cli.Table, l *api.DeviceLosses, zero bool) {
	if l == nil {
		return
	}
	if l.RxFrameErrors > 0 || zero {
		tab.Add("of these: congestion, no ECN inside, or reserved bits", strconv.FormatUint(l.RxFrameErrors, 10))
	}
	if cut := l.RxErrors - min(l.RxErrors, l.RxFrameErrors); cut > 0 || zero {
		tab.Add("of these: inner packet cut", strconv.FormatUint(cut, 10))
	}
}

// addLosses adds the frames that a device itself counts as lost.
func addLosses(tab *cli.Table, what string, l *api.DeviceLosses, zero bool, lost map[int]bool) {
	if l == nil {
		return
	}
	if l.Device != "" {
		what += " " + l.Device
	}
	for _, c := range []struct {
		name  string
		value uint64
		lost  bool
	}{{"unwanted (rx dropped)", l.RxDropped, false}, {"tx dropped", l.TxDropped, true},
		{"rx errors", l.RxErrors, true}, {"tx errors", l.TxErrors, true}, {"rx missed", l.RxMissed, true}} {
		if c.value > 0 || zero {
			lost[len(tab.Rows)] = c.lost
			tab.Add(what+", "+c.name, strconv.FormatUint(c.value, 10))
		}
	}
}
