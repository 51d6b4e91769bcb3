package model

import "heddle/internal/plan"

// isOutside reports whether the tunnel knows behind which endpoint of another host the destination of a port's frame
// is: the frame then is for the tunnel alone (S190).
func isOutside(r *run) bool {
	if r.from == nil || r.sw.crossing == nil {
		return false
	}
	at, known := r.sw.crossing.locate(Station{r.from.VNI, r.seg.VLAN, r.head.dst}, r.now)
	if known {
		r.res.Outside = at.Endpoint
	}
	return known
}

// heardHere forgets what frames of other hosts have shown of a MAC that is now learned at a port of this host.
func heardHere(r *run, mac plan.MAC) {
	if r.sw.crossing != nil {
		r.sw.crossing.forgetShown(Station{r.from.VNI, r.seg.VLAN, mac})
	}
}

// forgetShown forgets what frames have shown of a station. Its place behind the endpoint is free from the next sweep
// on.
func (c *Crossing) forgetShown(who Station) {
	c.memory.locations.recall(who)
	delete(c.memory.shown, who)
}

// sayOutside says behind which endpoint the destination is.
func sayOutside(r *run) {
	at := r.res.Outside.String()
	if host := r.sw.crossing.host[r.res.Outside]; host != "" {
		at += " of host " + host
	}
	r.say(StageLookUp, "%s is known behind the endpoint %s in %s: the frame is for the tunnel, and no port that wants "+
		"unknown destinations gets a copy", r.head.dst, at, r.seg)
}
