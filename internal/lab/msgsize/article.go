package msgsize

import "math"

// figures are what the article published for one message size, in bits per second.
type figures struct {
	size int // bytes
	// directOn is VM to VM with the optimised driver (vmxnet), firewallOff and firewallOn through the virtual firewall
	// with the default driver and with the optimised one. VM to VM with the default driver was not published.
	directOn, firewallOff, firewallOn float64
}

// article is the three tables of "VMware Network Performance" (7 August 2008), netperf's TCP range test between VMs
// of one ESX host. The size 4098 is the article's.
func article() []figures {
	const m = 1e6
	return []figures{
		{1, 2.71 * m, 4.82 * m, 4.26 * m},
		{4, 10.87 * m, 18.30 * m, 16.13 * m},
		{16, 43.41 * m, 60.91 * m, 66.07 * m},
		{64, 130.74 * m, 108.85 * m, 230.65 * m},
		{256, 238.01 * m, 118.03 * m, 292.02 * m},
		{1024, 330.61 * m, 123.85 * m, 348.46 * m},
		{4098, 359.67 * m, 127.46 * m, 371.69 * m},
		{16384, 366.29 * m, 130.13 * m, 382.50 * m},
		{65536, 365.39 * m, 130.63 * m, 382.16 * m},
	}
}

// published is the article's figure for a size on a path with offloads on or off, NaN where it has none.
func published(size int, p path, offloads bool) float64 {
	for _, f := range article() {
		switch {
		case f.size != size:
		case p == direct && offloads:
			return f.directOn
		case p == firewall && offloads:
			return f.firewallOn
		case p == firewall:
			return f.firewallOff
		}
	}
	return math.NaN()
}
