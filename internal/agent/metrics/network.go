package metrics

import (
	"heddle/internal/api"
	"heddle/internal/fabric"
)

// Names of the metrics of the health check.
const (
	networkFaults  = "heddle_network_faults"
	networkPaths   = "heddle_network_paths"
	networkTunnels = "heddle_network_tunnels"
	probesSent     = "heddle_probes_sent_total"
	probesAnswered = "heddle_probes_answered_total"
	probesForged   = "heddle_probes_forged_total"
)

// networkFamilies returns the metrics of the health check.
func networkFamilies() []Family {
	return []Family{
		{Name: networkFaults, Type: Gauge, Help: "What \"heddle health\" finds in the physical network and in " +
			"tunnels about this host, by code; those of lossy, slow, apart and does-not-know are " +
			"notes.", Labels: []string{"code"}},
		{Name: networkPaths, Type: Gauge, Help: "Paths from this host's uplinks that are probed, by what is known of " +
			"them.", Labels: []string{"state"}},
		{Name: networkTunnels, Type: Gauge, Help: "Pairs of a tunnel endpoint of this host and one of another host " +
			"that are probed, by what is known of them.", Labels: []string{"state"}},
		{Name: probesSent, Type: Counter, Help: "Probes of the health check that were sent."},
		{Name: probesAnswered, Type: Counter, Help: "Probes of others that were answered."},
		{Name: probesForged, Type: Counter, Help: "Frames of the type of probes that no host of the cluster signed."},
	}
}

// network adds the metrics of the health check.
func (s *series) network(h *api.HostHealth) {
	by := map[string]int{}
	for _, f := range h.Findings {
		by[f.Code]++
	}
	for _, code := range fabric.Codes() {
		s.gauge(networkFaults, float64(by[string(code)]), newLabels([]string{"code"}, string(code)))
	}
	states := func(name string, all, passing, waiting uint32) {
		for _, of := range []struct {
			state string
			n     uint32
		}{{"passing", passing}, {"unknown", waiting}, {"failing", all - passing - waiting}} {
			s.gauge(name, float64(of.n), newLabels([]string{"state"}, of.state))
		}
	}
	states(networkPaths, h.Paths, h.Passing, h.Waiting)
	states(networkTunnels, h.Tunnels, h.TunnelsPassing, h.TunnelsWaiting)
	s.count(probesSent, h.Sent, nil)
	s.count(probesAnswered, h.Answered, nil)
	s.count(probesForged, h.Forged, nil)
}
