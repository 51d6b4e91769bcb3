package fabric

import (
	"net/netip"
	"strings"
)

// sayAway adds to a finding about endpoints whose hosts are not connected to the controllers: what stopped there most
// likely stopped the tunnel, too.
func (g *tunnels) sayAway(f *Finding, ends []netip.Addr) {
	var away []string
	for _, a := range ends {
		if g.away[a] {
			away = append(away, g.name[a])
		}
	}
	if len(away) == 0 {
		return
	}
	is := "is"
	if len(away) > 1 {
		is = "are"
	}
	f.Text = strings.TrimSuffix(f.Text, ".") + "; " + some(away) + " " + is + " not connected to the controllers"
	f.Remedy = "see first whether the hosts that are not connected run, and their agents (heddle host list); then " +
		f.Remedy
}
