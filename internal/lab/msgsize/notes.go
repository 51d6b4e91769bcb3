package msgsize

import (
	"fmt"

	"heddle/internal/lab/report"
)

// notes say how the results were measured.
func (m *Measured) notes() []string {
	return []string{
		fmt.Sprintf("Throughput of one TCP connection whose sender writes messages of the given size, in %d rounds "+
			"of %v after %v; the middle of the rounds. As in netperf's TCP test, Nagle's algorithm is on: while "+
			"something is unacknowledged, small messages wait and share a segment. The receiver is woken for every "+
			"%d KiB.",
			m.effort.rounds, m.effort.duration, m.effort.warmup, gather>>10),
		"VM-VM: two VMs of one port group. VM-FW-VM: two port groups with a VLAN each, and a VM with an arm in both " +
			"that routes and filters with nftables, connections from inside only. One host, one switch; VMs are " +
			"network namespaces, so that a message costs the sender no exit from a virtual machine, as it did the " +
			"article's.",
		"on: the guests' adapters compute checksums and cut segments (the article's vmxnet driver). off: neither, " +
			"nor do they join what arrives (the article's default driver); the article has no figures for VM to VM " +
			"with it.",
		fmt.Sprintf("The firewalls counted %d packets of established connections, at least what was measured through "+
			"them, and refused a connection from outside.", m.passed),
	}
}

// conclusions compares the article's statements with the measurement.
func (m *Measured) conclusions() (list []string) {
	first, last := m.effort.sizes[0], m.effort.sizes[len(m.effort.sizes)-1]
	for _, mtu := range m.effort.mtus {
		list = append(list, m.compare(mtu, first, last)...)
	}
	return list
}

// compare says how the firewall and the offloads changed the throughput, and how they did in the article.
func (m *Measured) compare(mtu, first, last int) []string {
	on, off := setting{firewall, guests{true, mtu}}, setting{firewall, guests{false, mtu}}
	ratio := func(rounds []float64) string { return report.Ratio.Format(report.Summarise(rounds).Median) }
	theirs := func(a, b float64) string { return report.Ratio.Format(a / b) }
	text := fmt.Sprintf("MTU %d, firewall of direct with offloads on: %s at %d B", mtu,
		ratio(m.ofDirect(cell{last, on})), last)
	text += fmt.Sprintf(" (article %s)", theirs(published(last, firewall, true), published(last, direct, true)))
	if first != last {
		text += fmt.Sprintf(", %s at %d (article %s)", ratio(m.ofDirect(cell{first, on})), first,
			theirs(published(first, firewall, true), published(first, direct, true)))
	}
	gain := report.Ratios(m.rates(cell{last, on}), m.rates(cell{last, off}))
	text += fmt.Sprintf(". Offloads make the way through the firewall %s times as fast at %d B (article %s).",
		ratio(gain), last, theirs(published(last, firewall, true), published(last, firewall, false)))
	perSegment := func(s setting) float64 {
		return report.Summarise(m.of(cell{first, s}, func(s sample) float64 { return s.perSegment })).Median
	}
	segments := fmt.Sprintf("MTU %d, messages of %d B, offloads on: a segment carried %s on the direct way and %s "+
		"through the firewall.",
		mtu, first, report.Bytes.Format(perSegment(setting{direct, on.guests})), report.Bytes.Format(perSegment(on)))
	return []string{text, segments}
}
