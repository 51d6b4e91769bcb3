package spec

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"heddle/internal/spec/known"
)

// level is one step of the inheritance: a policy, its place, and the object it belongs to.
type level struct {
	at         at
	policy     *Policy
	kind, name string
}

// what is the object in words.
func (l level) what() string { return l.kind + " " + l.name }

// silent says whether a policy at a sets nothing, not even to a zero value.
func (v *validator) silent(a at, p *Policy) bool { return *p == (Policy{}) && !v.written(a, ofPolicy) }

// policy checks the last level of chain, for switch i; those before it are what it inherits.
func (v *validator) policy(i int, chain []level) {
	own := chain[len(chain)-1]
	p := own.policy
	if v.silent(own.at, p) {
		return
	}
	own.portsAlone(v)
	if p.VLAN != nil {
		v.vlan(own.at.field("vlan"), p.VLAN)
	}
	sec := own.at.field("security")
	enum(v, sec, "promiscuous", p.Security.Promiscuous, Accept, Reject)
	enum(v, sec, "macChanges", p.Security.MACChanges, Accept, Reject)
	enum(v, sec, "forgedTransmits", p.Security.ForgedTransmits, Accept, Reject)
	enum(v, sec, "dhcpServer", p.Security.DHCPServer, Accept, Reject)
	enum(v, sec, "routerAdvertisements", p.Security.RouterAdvertisements, Accept, Reject)
	v.linkControl(sec.field("guestLinkControl"), p.Security.GuestLinkControl)
	v.guardAddresses(sec.field("addressGuard").field("addresses"), own, p.Security.AddressGuard.Addresses)
	v.learning(sec.field("macLearning"), i, p.Security.MACLearning)
	v.stormControl(own.at.field("stormControl"), p.StormControl)
	v.monitoring(own.at.field("monitoring"), p.Monitoring)
	v.teaming(i, chain)
}

func (v *validator) linkControl(a at, list *[]string) {
	if list == nil {
		return
	}
	for i, name := range *list {
		switch {
		case !slices.Contains(LinkControls(), name):
			v.fault(a, shown(name), "must be a list of %s; [] lets none of them pass", orList(LinkControls()))
		case slices.Contains((*list)[:i], name):
			v.fault(a, shown(name), "is named twice")
		}
	}
}

func (v *validator) guardAddresses(a at, own level, list *[]string) {
	switch {
	case list == nil || own.kind != "port": // portsAlone reports it
		return
	case len(*list) > MaxGuardAddresses:
		v.fault(a, "", "at most %d addresses and prefixes, these are %d: give a prefix in place of its addresses",
			MaxGuardAddresses, len(*list))
		return
	}
	seen := map[netip.Prefix]bool{}
	for i, s := range *list {
		p, err := ParseGuardAddress(s)
		switch {
		case err != nil:
			v.fault(a.item(i, ""), shown(s), "%s", err)
		case seen[p]:
			v.fault(a.item(i, ""), shown(s), "listed twice: keep one")
		}
		seen[p] = true
	}
}

func (v *validator) vlan(a at, w *VLAN) {
	access, trunk := a.field("access"), a.field("trunk")
	hasAccess := w.Access != 0 || v.written(a, "access")
	hasTrunk := w.Trunk != nil || v.written(a, "trunk")
	given := 0
	for _, has := range []bool{w.None, hasAccess, hasTrunk} {
		if has {
			given++
		}
	}
	if given != 1 {
		v.fault(a, "", `exactly one of none: true, access: 100 and trunk: [10, "20-30"] must be given, not %d of them`,
			given)
	}
	if hasAccess && (w.Access < 1 || w.Access > maxVLAN) {
		hint := ""
		if w.Access == 0 {
			hint = "; for untagged frames write none: true"
		}
		v.fault(access, strconv.Itoa(w.Access), "a VLAN id is 1–4094%s", hint)
	}
	if hasTrunk {
		v.ranges(trunk, w.Trunk)
	}
	enum(v, a, "outer", w.Outer, "802.1q", "802.1ad")
	if w.Outer != "" && !hasTrunk {
		v.fault(a.field("outer"), shown(w.Outer), "only a trunk has outer tags: write trunk, or leave outer out")
	}
}

func (v *validator) learning(a at, i int, l MACLearning) {
	s := &v.cfg.Switches[i]
	if l.Enabled != nil && *l.Enabled && s.Kind == Standard {
		v.fault(a.field("enabled"), "true", "MAC learning needs a distributed switch, and %s is a standard one: set "+
			"kind: distributed on it, or leave learning off", s.Name)
	}
	if l.Limit != nil && (*l.Limit < 0 || *l.Limit > MaxMACs) {
		v.fault(a.field("limit"), strconv.Itoa(*l.Limit), "a limit is 0–%d MACs", MaxMACs)
	}
	enum(v, a, "limitPolicy", l.LimitPolicy, LimitDrop, LimitAllow)
	if l.Ageing != "" || v.written(a, "ageing") {
		if _, ok := l.AgeingTime(); !ok {
			v.fault(a.field("ageing"), shown(l.Ageing), "an ageing time is a duration of 1s–24h, such as 10m")
		}
	}
}

func (v *validator) stormControl(a at, s StormControl) {
	for _, r := range []struct {
		field string
		rate  *int
	}{{"broadcast", s.Broadcast}, {"multicast", s.Multicast}, {"unknownUnicast", s.UnknownUnicast}} {
		if r.rate != nil && (*r.rate < 0 || *r.rate > MaxStormRate) {
			v.fault(a.field(r.field), strconv.Itoa(*r.rate), "a rate is 1–%d frames per second, or 0 for no limit",
				MaxStormRate)
		}
	}
	if s.Burst != "" || v.written(a, "burst") {
		if _, ok := s.BurstTime(); !ok {
			v.fault(a.field("burst"), shown(s.Burst), "a burst is a duration of 10ms–2s, such as 1s: the time in "+
				"which the rate gives as many frames")
		}
	}
}

// teaming checks the last level's own lists, and what the levels together come to where this one has a say in it.
func (v *validator) teaming(i int, chain []level) {
	own := chain[len(chain)-1]
	t := own.policy.Teaming
	a := own.at.field("teaming")
	enum(v, a, "policy", t.Policy, OriginatingPort, SourceMAC, IPHash, ExplicitOrder, LoadBased)
	enum(v, a, "failureDetection", t.FailureDetection, DetectLink, DetectBeacon)
	if sw := &v.cfg.Switches[i]; t.Policy == LoadBased && sw.Kind == Standard {
		v.fault(a.field("policy"), string(LoadBased), "load-based teaming needs a distributed switch, and %s is a "+
			"standard one: set kind: distributed on it", sw.Name)
	}
	v.uplinkList(a.field("active"), i, t.Active)
	if t.Active != nil {
		if why := v.cfg.Switches[i].aloneFault(*t.Active); why != "" {
			v.fault(a.field("active"), listText(*t.Active), "%s", why)
		}
	}
	v.uplinkList(a.field("standby"), i, t.Standby)
	var policy TeamingPolicy
	var detection FailureDetection
	var active, standby []string
	var activeFrom, standbyFrom string
	for _, l := range chain {
		if l.policy.Teaming.Policy != "" {
			policy = l.policy.Teaming.Policy
		}
		if l.policy.Teaming.FailureDetection != "" {
			detection = l.policy.Teaming.FailureDetection
		}
		if l.policy.Teaming.Active != nil {
			active, activeFrom = *l.policy.Teaming.Active, l.what()
		}
		if l.policy.Teaming.Standby != nil {
			standby, standbyFrom = *l.policy.Teaming.Standby, l.what()
		}
	}
	if t.Active != nil || t.Standby != nil {
		v.overlap(a, t, active, standby, activeFrom, standbyFrom)
	}
	if policy == IPHash && detection == DetectBeacon && (t.Policy != "" || t.FailureDetection != "") {
		v.fault(a, "", "beacon probing does not go with ip-hash: the physical switch sends a beacon back to any link "+
			"of the channel; use failureDetection: link")
	}
	if policy != IPHash || len(standby) == 0 {
		return
	}
	switch {
	case t.Policy != "":
		v.fault(a.field("policy"), string(IPHash), "ip-hash needs every uplink it uses active, and %s makes %s "+
			"standby: set standby: [] here", standbyFrom, orList(standby))
	case t.Standby != nil:
		v.fault(a.field("standby"), shown(listText(standby)),
			"the policy is ip-hash, which needs every uplink it uses active: list them under active")
	}
}

// overlap reports uplinks that are both active and standby, at the list this level gives.
func (v *validator) overlap(a at, t Teaming, active, standby []string, activeFrom, standbyFrom string) {
	own, other, otherName, otherFrom, field := standby, active, "active", activeFrom, "standby"
	if t.Standby == nil {
		own, other, otherName, otherFrom, field = active, standby, "standby", standbyFrom, "active"
	}
	for k, name := range own {
		if slices.Contains(other, name) {
			v.fault(a.field(field).item(k, ""), shown(name),
				"%s has this uplink %s too: an uplink is active or standby, not both", otherFrom, otherName)
		}
	}
}

// uplinkList checks that a list names uplinks of switch i, each once.
func (v *validator) uplinkList(a at, i int, list *[]string) {
	if list == nil {
		return
	}
	sw := &v.cfg.Switches[i]
	seen := map[string]bool{}
	for k, name := range *list {
		_, isUplink := v.uplinks[i][name]
		lag := sw.lagOf(name)
		switch {
		case !isUplink && sw.LAG(name) == nil:
			v.missing(a.item(k, ""), shown(name), v.noSuchUplink(i, name, true))
		case isUplink && lag != "":
			v.fault(a.item(k, ""), shown(name), "this uplink is a member of LAG %s: list the LAG instead", lag)
		case seen[name]:
			v.fault(a.item(k, ""), shown(name), "listed twice: keep one")
		}
		seen[name] = true
	}
}

func (v *validator) noSuchUplink(i int, name string, lags bool) string {
	s := &v.cfg.Switches[i]
	names, devices := make([]string, 0, len(s.Uplinks)+len(s.LAGs)), map[string]string{}
	for j := range s.Uplinks {
		names = append(names, s.Uplinks[j].Name)
		devices[s.Uplinks[j].Device] = "the device of " + s.Uplinks[j].Name
	}
	for j := range s.LAGs {
		if _, also := v.uplinks[i][s.LAGs[j].Name]; lags && !also {
			names = append(names, s.LAGs[j].Name)
		}
	}
	return "switch " + s.Name + " has no such uplink" + known.Names{Owner: s.Name, All: names, Else: devices}.Instead(
		name)
}

func listText(list []string) string {
	return "[" + strings.Join(list, ", ") + "]"
}
