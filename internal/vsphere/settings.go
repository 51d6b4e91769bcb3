package vsphere

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/spec"
)

// settings translates a port setting of a switch (top) or a port group.
type settings struct {
	switchOf *translated
	about    about
	from     *setting
	top      bool
}

// own is the value that the level sets by itself, nil where it inherits. A switch inherits from nobody.
func own[T any](p *policy[T], inherited, top bool) *T {
	if p == nil || !top && (inherited || p.Inherited) {
		return nil
	}
	return p.Value
}

func (t *settings) all(to *spec.Policy) {
	t.vlan(to)
	t.security(&to.Security)
	t.macManagement(&to.Security)
	t.teaming(&to.Teaming)
	t.blocked(to)
	if m := own(t.from.IpfixEnabled, false, t.top); m != nil && (*m || !t.top) {
		to.Monitoring.IPFIX = m
	}
	t.others()
}

// blocked takes whether ports are blocked. Where the VLAN can't be kept they are, whatever they were: by the port
// group's VLAN, or by the switch's if the port group inherits it.
func (t *settings) blocked(to *spec.Policy) {
	if t.top {
		t.switchOf.noVLAN = to.Blocked != nil
	}
	b := own(t.from.Blocked, false, t.top)
	switch {
	case to.Blocked != nil, !t.top && t.switchOf.noVLAN && to.VLAN == nil:
	case b != nil && (*b || !t.top):
		to.Blocked = b
	case !t.top && t.switchOf.noVLAN:
		to.Blocked = ptr(false)
	}
}

// vlan takes an access VLAN, none, or a trunk. A private VLAN is not there: nothing passes then.
func (t *settings) vlan(to *spec.Policy) {
	v := t.from.VLAN
	if v == nil || v.Inherited && !t.top {
		return
	}
	var id int
	var trunk []vlanRange
	switch {
	case v.PvlanID != 0:
		to.VLAN, to.Blocked = access(v.PvlanID), ptr(true)
		t.about.changed("private VLAN", fmt.Sprint(v.PvlanID), "its ports are blocked in this VLAN, so that none "+
			"reaches what it could not reach before: give the port group a VLAN of its own, then remove blocked: true")
	case json.Unmarshal(v.VlanID, &id) == nil && len(v.VlanID) > 0:
		t.oneVLAN(id, to)
	case json.Unmarshal(v.VlanID, &trunk) == nil && len(trunk) > 0:
		list, odd := ranges(trunk)
		if odd || len(list) == 0 {
			t.about.changed("VLAN trunk range", string(v.VlanID), "it is "+strings.Join(list, ", ")+
				": ids are 0 to 4094")
		}
		if to.VLAN = (&spec.VLAN{Trunk: list}); len(list) == 0 {
			to.VLAN, to.Blocked = &spec.VLAN{None: true}, ptr(true)
		}
	case len(v.VlanID) > 0:
		to.Blocked = ptr(true)
		t.about.changed("VLAN", string(v.VlanID), "this kind is not known, and its ports are blocked: set vlan, then "+
			"remove blocked: true")
	}
}

func access(id int) *spec.VLAN {
	if id < 1 || id > 4094 {
		return &spec.VLAN{None: true}
	}
	return &spec.VLAN{Access: id}
}

func (t *settings) oneVLAN(id int, to *spec.Policy) {
	switch {
	case id == 0 && t.top: // the default
	case id == 4095: // virtual guest tagging
		to.VLAN = &spec.VLAN{Trunk: []string{"0-4094"}}
	case id >= 0 && id < 4095:
		to.VLAN = access(id)
	default:
		to.Blocked = ptr(true)
		t.about.changed("VLAN", fmt.Sprint(id), "this is no VLAN, and its ports are blocked")
	}
}

// ranges writes VLAN ranges, in order and merged. odd says that some of it is no VLAN.
func ranges(all []vlanRange) (list []string, odd bool) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b vlanRange) int { return a.Start - b.Start })
	last := -2 // the end of the last range
	var from int
	flush := func() {
		switch {
		case last < 0:
		case from == last:
			list = append(list, fmt.Sprint(from))
		default:
			list = append(list, fmt.Sprintf("%d-%d", from, last))
		}
	}
	for _, r := range all {
		start, end := max(r.Start, 0), min(r.End, 4094)
		odd = odd || start != r.Start || end != r.End
		if start > end {
			odd = true
			continue
		}
		if start > last+1 {
			flush()
			from = start
		}
		last = max(last, end)
	}
	flush()
	return list, odd
}

func answer(b *bool) spec.Answer {
	switch {
	case b == nil:
		return ""
	case *b:
		return spec.Accept
	}
	return spec.Reject
}

func (t *settings) security(to *spec.Security) {
	s := t.from.SecurityPolicy
	if s == nil {
		return
	}
	to.Promiscuous = answer(own(s.AllowPromiscuous, s.Inherited, t.top))
	to.MACChanges = answer(own(s.MACChanges, s.Inherited, t.top))
	to.ForgedTransmits = answer(own(s.ForgedTransmits, s.Inherited, t.top))
}

// macManagement has precedence over the security policy, field by field.
func (t *settings) macManagement(to *spec.Security) {
	m := t.from.MACManagementPolicy
	if m == nil || m.Inherited && !t.top {
		return
	}
	set := func(to *spec.Answer, b *bool) {
		if b != nil {
			*to = answer(b)
		}
	}
	set(&to.Promiscuous, m.AllowPromiscuous)
	set(&to.MACChanges, m.MACChanges)
	set(&to.ForgedTransmits, m.ForgedTransmits)
	l := m.MACLearning
	if l == nil || l.Inherited && !t.top || t.top && !l.Enabled {
		return
	}
	to.MACLearning.Enabled, to.MACLearning.UnicastFlooding = ptr(l.Enabled), l.AllowUnicastFlooding
	to.MACLearning.LimitPolicy = spec.LimitPolicy(strings.ToLower(l.LimitPolicy))
	if p := to.MACLearning.LimitPolicy; p != "" && p != spec.LimitDrop && p != spec.LimitAllow {
		to.MACLearning.LimitPolicy = spec.LimitDrop
		t.about.changed("MAC learning's limit policy", l.LimitPolicy, "it is drop: this one is not known")
	}
	if l.Limit != nil {
		n := min(max(*l.Limit, 0), 4096)
		to.MACLearning.Limit = &n
		if n != *l.Limit {
			t.about.changed("MAC learning's limit", fmt.Sprint(*l.Limit), fmt.Sprintf("it is %d", n))
		}
	}
}

// others notes what has no counterpart.
func (t *settings) others() {
	f := t.from
	t.shaping("ingress traffic shaping", f.InShapingPolicy)
	t.shaping("egress traffic shaping", f.OutShapingPolicy)
	if p := f.FilterPolicy; p != nil && (t.top || !p.Inherited) && len(p.FilterConfig) > 0 {
		t.about.absent("traffic filtering and marking", fmt.Sprintf("%d rules or lists of rules", len(p.FilterConfig)),
			"filter in the guests, or at a router. Against forged addresses there is the address guard")
	}
	if key := own(f.NetworkResourcePoolKey, false, t.top); key != nil && *key != "" && *key != "-1" {
		t.about.absent("network resource pool", *key, "queues of the physical switch, or of the host's cards (tc), "+
			"have to do it")
	}
	if q := own(f.QosTag, false, t.top); q != nil && *q > 0 {
		t.about.absent("priority tag (802.1p)", fmt.Sprint(*q), "mark the frames at the physical switch")
	}
	if x := own(f.TxUplink, false, t.top); x != nil && *x {
		t.about.absent("forward all traffic to the uplink", "enabled", "set txUplink: true at the ports that need it")
	}
}

func (t *settings) shaping(setting string, s *shaping) {
	if s == nil {
		return
	}
	if on := own(s.Enabled, s.Inherited, t.top); on == nil || !*on {
		return
	}
	var words []string
	for _, n := range []struct {
		word string
		p    *policy[int64]
		unit string
	}{{"average", s.AverageBandwidth, "bit/s"}, {"peak", s.PeakBandwidth, "bit/s"}, {"burst", s.BurstSize, "bytes"}} {
		if n.p != nil && n.p.Value != nil {
			words = append(words, fmt.Sprintf("%s %d %s", n.word, *n.p.Value, n.unit))
		}
	}
	t.about.absent(setting, strings.Join(words, ", "), "ports send as fast as they can: limit the guest's adapter "+
		"(libvirt: <bandwidth>)")
}
