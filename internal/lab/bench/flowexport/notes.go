package flowexport

import (
	"fmt"
	"math"

	"heddle/internal/lab"
	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// methodNotes explain how the figures were measured.
func (r *run) methodNotes() []string {
	o := r.opts
	least, most := math.MaxInt, 0
	for _, c := range r.cells {
		least, most = min(least, r.visits[c.id()].count), max(most, r.visits[c.id()].count)
	}
	return []string{
		fmt.Sprintf("Each metered interval of %v lies between two baselines with the same background; a ratio is to "+
			"what they say of its own time, on the line through both. Ratios are medians "+
			"(quartiles), and a budget that is less than two standard errors away is not resolved. Cells were "+
			"visited %d to %d times: no more once their ratios were judged beyond doubt, or known to %g.",
			o.Duration, least, most, o.Resolution),
		fmt.Sprintf("ipfix meters what leaves the switch at ports and uplink, ipfix-bi both directions at the ports, "+
			"every packet; each packet is metered once on each host. Both hosts, their VMs, "+
			"agents and collectors share %d CPUs: a loss is that of both hosts together, where the article's is that "+
			"of the slower.", len(r.rig.cpus)),
		r.segmentNote(),
		fmt.Sprintf("A load goes on while metering is switched on and off under it. A connection per transaction, "+
			"crr, is measured for %v; metered, it runs for %v before, so that as many "+
			"flows are exported as end, and a baseline begins when all of them are told of.", settledFor*o.Duration,
			o.Settle),
		fmt.Sprintf("TX and RX are cores that metering took on the senders' and the sinks' host: the kernel's own "+
			"time of the programs, taken in the warm-up, and the CPU time of the agent, which drains "+
			"and exports, beyond the baselines', for all packets that were metered there, the background's with "+
			"them. Agents have priority over VMs (nice %d and %d), so that their work is in the "+
			"rates and not put off.", lab.AgentNice, vmNice),
		"udp is packets that came to the VM, also those its socket had no room for; crr has one and four sessions " +
			"per pair; stream 16 KiB writes.",
	}
}

// sameNotes give the result of comparing baselines with one another.
func (r *run) sameNotes() (notes []string) {
	for _, cfg := range r.configs {
		if cfg.metering.meters() {
			continue
		}
		lowest, highest := math.Inf(1), math.Inf(-1)
		var all []float64
		for _, c := range r.cells {
			if s := r.kept(c, cfg); s.Rounds > 0 {
				lowest, highest = min(lowest, s.Median), max(highest, s.Median)
				all = append(all, r.each(c, cfg, sample.ratio)...)
			}
		}
		s := report.Summarise(all)
		if s.Rounds == 0 {
			continue
		}
		text := "Baselines to the baselines before and after them, which are twice as far away as those of a metered " +
			"interval (%s): "
		if cfg.metering == again {
			text = "A further baseline in the place of a metered interval (%s): "
		}
		notes = append(notes, fmt.Sprintf(text+"%.4f ± %.4f over all cells, quartiles %.3f–%.3f, the cells' medians "+
			"%.3f–%.3f.",
			cfg.name(), s.Median, r.standardError(cfg, s), s.Q1, s.Q3, lowest, highest))
	}
	return notes
}

// scanNote describes the background.
func (r *run) scanNote() string {
	if len(r.scans) == 0 {
		return ""
	}
	var sum traffic.Scanned
	for _, s := range r.scans {
		sum.Seconds += s.Seconds
		sum.Sent += s.Sent
		sum.Answered += s.Answered
	}
	return fmt.Sprintf("In the background: a scan of %d flows, %.0f SYNs per second, of which %.2f %% were answered "+
		"by a reset.",
		r.opts.Flows, float64(sum.Sent)/sum.Seconds, 100*float64(sum.Answered)/float64(max(sum.Sent, 1)))
}

// keptUp is the share of ended flows from which on an agent counts as having exported as fast as flows ended.
const keptUp = 0.8

// lagNotes name the cells in which agents did not keep up.
func (r *run) lagNotes() (notes []string) {
	for _, c := range r.cells {
		for _, cfg := range r.metered() {
			if part := r.keepsUp(c, cfg); part < keptUp {
				notes = append(notes, fmt.Sprintf("%s, %s: only %.0f %% as many records were exported in the "+
					"measured intervals as flows ended: the VMs left an agent too little CPU time, "+
					"and the rest came later. Rate and cost are without that work.", c, cfg.name(), 100*part))
			}
		}
	}
	return notes
}

// exportNote says what the collectors received.
func (r *run) exportNote() string {
	var sum exported
	for _, e := range r.exported {
		sum.add(e)
	}
	if sum.messages == 0 {
		return ""
	}
	return fmt.Sprintf("The collectors were sent %d records in %d messages of %s altogether.", sum.records,
		sum.messages, report.Bytes.Format(float64(sum.bytes)))
}

// segmentNote says where the VMs are.
func (r *run) segmentNote() string {
	if r.opts.Overlay {
		return "The VMs are in an overlay segment: VXLAN between host ports of the two hosts, which a second switch " +
			"connects to the cable; what is metered is the frames inside."
	}
	return "The VMs are in a VLAN on the cable between the hosts."
}
