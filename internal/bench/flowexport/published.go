package flowexport

import "heddle/internal/traffic"

// published are the article's figures for a cell in a configuration, in its words; "" where it gives none as text. Its baseline of
// a configuration with flows in the background has none in the background: what it tells of those is in addition.
type published struct {
	loss string
	// tx and rx are cores that the IPFIX module took on each host, per 100 kpps or per 1 k transactions per second.
	tx, rx string
}

// article is "VDS IPFIX performance with NSX-V and vRNI", VMware knowledge base 314383: ESXi 6.7 U2, two 24-core hosts with 10 Gb/s
// adapters, netperf.
func article(c cell, cfg configuration) published {
	one, more := c.pairs == 1, cfg.background
	switch {
	case cfg.metering == off:
		return published{}
	case c.kind == traffic.KindStream:
		return published{loss: "at or near 0 %"}
	case c.kind == traffic.KindCRR:
		p := published{loss: "20–42 %"}
		if c.pairs > 1 {
			p.loss = "20–43 %" // 86 to 49 k/s at most
		}
		if more {
			p.loss = "+2–10 %"
		}
		if one && c.sessions == 4 && cfg == (configuration{uni, false}) {
			p.tx, p.rx = "0.0104", "0.0119"
		}
		return p
	case cfg.metering == uni && one && !more:
		return published{"20–30 %", "0.058", "0.084"}
	case cfg.metering == uni && one:
		return published{"+2–8 %", "0.06", "0.049"}
	case cfg.metering == uni && !more:
		return published{loss: "25 %"} // 2 to 1.5 Mpps
	case cfg.metering == bi && one && !more:
		return published{loss: "6–12 %"}
	case cfg.metering == bi && one:
		return published{loss: "+2–9 %"}
	case cfg.metering == bi && !more:
		return published{loss: "10 %"} // 2 to 1.8 Mpps
	}
	return published{}
}
