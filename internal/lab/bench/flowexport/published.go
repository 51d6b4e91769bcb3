package flowexport

import (
	"fmt"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// published are the article's figures for a cell in a configuration; nil and 0 if it gives none as text.
type published struct {
	loss *lossRange
	// rate is the highest of the whole system, in packets or transactions per second.
	rate float64
	// tx and rx are cores that the IPFIX module took on each host, per 100 kpps or per 1 k transactions per second.
	tx, rx float64
}

// lossRange is a loss in percent. If more is set, it is the additional loss caused by flows in the background.
type lossRange struct {
	low, high float64
	more      bool
}

// String is the range in a table.
func (l *lossRange) String() string {
	sign := ""
	if l.more {
		sign = "+"
	}
	switch {
	case l.high == 0:
		return "near 0 %"
	case l.low == l.high:
		return fmt.Sprintf("%s%g %%", sign, l.low)
	}
	return fmt.Sprintf("%s%g–%g %%", sign, l.low, l.high)
}

// percent is the range as numbers; nil for an additional loss.
func (l *lossRange) percent() any {
	if l == nil || l.more {
		return nil
	}
	return report.Spread{Median: (l.low + l.high) / 2, Q1: l.low, Q3: l.high, Min: l.low, Max: l.high, Rounds: 1}
}

// publishedBackground is the article's CPU usage of each host by the scan alone, in percent of its CPUs.
const publishedBackground = 26

// article is "VDS IPFIX performance with NSX-V and vRNI", VMware knowledge base 314383 (build ESX 6.8): two 24-core
// hosts with 10 Gb/s adapters, netperf.
func article(c cell, cfg configuration) published {
	p := change(c, cfg)
	p.rate = highest(c, cfg)
	return p
}

// highest is the article's highest rate of the whole system; 0 where it gives none. It names no size of packets and no
// number of sessions: the rates stand beside the cells that reach the most here.
func highest(c cell, cfg configuration) float64 {
	switch {
	case c.pairs == 1 || cfg.background:
		return 0
	case c.kind == traffic.KindUDP && c.size == shortest:
		return map[metering]float64{off: 2e6, uni: 1.5e6, bi: 1.8e6}[cfg.metering]
	case c.kind == traffic.KindCRR && c.sessions > 1:
		return map[metering]float64{off: 86e3, uni: 49e3}[cfg.metering]
	}
	return 0
}

// change is what the article says metering changes.
func change(c cell, cfg configuration) published {
	one, more := c.pairs == 1, cfg.background
	loss := func(low, high float64) published { return published{loss: &lossRange{low, high, more}} }
	switch {
	case cfg.metering == off || c.kind == traffic.KindUDP && !one && more:
		return published{}
	case c.kind == traffic.KindStream:
		return published{loss: &lossRange{}}
	case c.kind == traffic.KindCRR && more:
		return loss(2, 10)
	case c.kind == traffic.KindCRR:
		p := loss(20, 42)
		if one && c.sessions == 4 && cfg.metering == uni {
			p.tx, p.rx = 0.0104, 0.0119
		}
		return p
	case !one && cfg.metering == uni:
		return loss(25, 25)
	case !one:
		return loss(10, 10)
	case cfg.metering == uni && !more:
		p := loss(20, 30)
		p.tx, p.rx = 0.058, 0.084
		return p
	case cfg.metering == uni:
		p := loss(2, 8)
		p.tx, p.rx = 0.06, 0.049
		return p
	case !more:
		return loss(6, 12)
	}
	return loss(2, 9)
}
