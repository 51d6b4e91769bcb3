package metrics

import "heddle/internal/api"

// Neighbours are who has which address in the overlay segments of a switch, in a scrape.
type Neighbours struct {
	Counts api.NeighbourCounts
	// Contested is how many addresses two MACs claim at present.
	Contested int
}

// Names of the metrics of answers for addresses in overlay segments.
const (
	neighbourRequests  = "heddle_neighbour_requests_total"
	neighbourSpoofed   = "heddle_neighbour_spoofed_total"
	neighbourUnbound   = "heddle_neighbour_unbound_total"
	neighbourClaims    = "heddle_neighbour_contested_claims_total"
	neighbourContested = "heddle_neighbour_contested_addresses"
)

func neighbourFamilies() []Family {
	labels := []string{"switch"}
	return []Family{
		{Name: neighbourRequests, Type: Counter, Help: "Requests of ARP and neighbour discovery in overlay segments " +
			"that other hosts were not asked: answered by this host, for its own guests alone (here), or beyond " +
			"what one MAC is answered in a second (held-back).", Labels: with(labels, "result")},
		{Name: neighbourSpoofed, Type: Counter, Help: "Packets of ARP and neighbour discovery whose sender names " +
			"another MAC than its own; they bind no address.", Labels: labels},
		{Name: neighbourUnbound, Type: Counter, Help: "New addresses beyond what one MAC may have in a second.",
			Labels: labels},
		{Name: neighbourClaims, Type: Counter, Help: "Claims to an address of which the owner still speaks.",
			Labels: labels},
		{Name: neighbourContested, Type: Gauge, Help: "Addresses that two MACs claim, so that this host answers for " +
			"neither.", Labels: labels},
	}
}

// neighbours adds the metrics of a switch whose tunnel answers.
func (s *series) neighbours(n *Neighbours) {
	c := &n.Counts
	labels := newLabels([]string{"switch"}, c.Switch)
	s.count(neighbourRequests, c.Answered, with1(labels, "result", "answered"))
	s.count(neighbourRequests, c.Here, with1(labels, "result", "here"))
	s.count(neighbourRequests, c.HeldBack, with1(labels, "result", "held-back"))
	s.count(neighbourSpoofed, c.Spoofed, labels)
	s.count(neighbourUnbound, c.Unbound, labels)
	s.count(neighbourClaims, c.Contested, labels)
	s.gauge(neighbourContested, float64(n.Contested), labels)
}
