package wire

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Bounds of what a host may say.
const (
	mostAbilities = 16
	mostUplinks   = 64
	mostVLANs     = 4095
	mostText      = 255
)

// Uplinks makes the message of a host's uplinks.
func Uplinks(members []fabric.Member) *controllerv1.ProbeUplinks {
	out := &controllerv1.ProbeUplinks{}
	for _, m := range members {
		out.Uplinks = append(out.Uplinks, &controllerv1.ProbeUplink{Switch: m.Switch, Uplink: m.Uplink, Mac: m.MAC[:],
			Mtu: uint32(m.MTU), Vlans: numbers(m.VLANs), Bundle: m.Bundle, Plug: m.Plug,
			Speed: m.Speed})
	}
	return out
}

// ReadUplinks reads a host's uplinks.
func ReadUplinks(id, name string, m *controllerv1.ProbeUplinks) (list []fabric.Member) {
	seen := map[fabric.End]bool{}
	for _, u := range m.GetUplinks() {
		end := fabric.End{Host: id, Switch: u.GetSwitch(), Uplink: u.GetUplink()}
		vlans := ids(u.GetVlans())
		if !spec.ValidName(u.GetSwitch()) || !spec.ValidName(u.GetUplink()) || len(u.GetMac()) != 6 ||
			len(vlans) == 0 || seen[end] || len(list) == mostUplinks || u.GetMtu() > fabric.Longest {
			continue
		}
		seen[end] = true
		list = append(list, fabric.Member{End: end, Name: name, MAC: plan.MAC(u.GetMac()), MTU: int(u.GetMtu()),
			VLANs: vlans, Bundle: short(u.GetBundle()), Plug: short(u.GetPlug()), Speed: u.GetSpeed()})
	}
	return list
}

// ReadAbilities reads what a host's agent knows to do.
func ReadAbilities(m *controllerv1.ProbeUplinks) (list []string) {
	for _, a := range m.GetAbilities()[:min(len(m.GetAbilities()), mostAbilities)] {
		list = append(list, short(a))
	}
	return list
}

// short is the beginning of a text, in whole characters: half of one would be no text that a message can have.
func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), mostText)], "") }

func numbers(vlans []uint16) []uint32 {
	list := make([]uint32, len(vlans))
	for i, v := range vlans {
		list[i] = uint32(v)
	}
	return list
}

// ids reads VLANs: in order, each once. A list that is longer than there are VLANs says some of them again.
func ids(list []uint32) []uint16 {
	list = list[:min(len(list), mostVLANs)]
	out := make([]uint16, 0, len(list))
	for _, v := range list {
		if v < mostVLANs {
			out = append(out, uint16(v))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Keys makes the message of keys.
func Keys(list []fabric.Secret) (out []*controllerv1.ProbeKey) {
	for _, k := range list {
		out = append(out, &controllerv1.ProbeKey{Number: k.Number, Key: k.Key[:]})
	}
	return out
}

// ReadKeys reads keys.
func ReadKeys(list []*controllerv1.ProbeKey) (out []fabric.Secret) {
	for _, k := range list {
		if len(k.GetKey()) == len(fabric.Secret{}.Key) {
			out = append(out, fabric.Secret{Number: k.GetNumber(), Key: [32]byte(k.GetKey())})
		}
	}
	return out
}

// Tasks makes the message of tasks: those that differ in their VLANs alone are one.
func Tasks(list []fabric.Task) *controllerv1.ProbeTasks {
	out := &controllerv1.ProbeTasks{}
	at := map[fabric.Task]*controllerv1.ProbeTask{}
	for _, t := range list {
		key := t
		key.VLAN = 0
		one := at[key]
		if one == nil {
			one = &controllerv1.ProbeTask{Path: path(t.Path), Mac: t.MAC[:], Mtu: uint32(t.MTU)}
			at[key] = one
			out.Tasks = append(out.Tasks, one)
		}
		one.Path.Vlans = append(one.Path.Vlans, uint32(t.VLAN))
	}
	return out
}

func path(p fabric.Path) *controllerv1.ProbePath {
	return &controllerv1.ProbePath{Switch: p.From.Switch, Uplink: p.From.Uplink, Host: p.To.Host, To: p.To.Uplink}
}

func readPath(id string, p *controllerv1.ProbePath) fabric.Path {
	return fabric.Path{From: fabric.End{Host: id, Switch: p.GetSwitch(), Uplink: p.GetUplink()},
		To: fabric.End{Host: p.GetHost(), Switch: p.GetSwitch(), Uplink: p.GetTo()}}
}

// ReadTasks reads the tasks of a host.
func ReadTasks(id string, m *controllerv1.ProbeTasks) (list []fabric.Task) {
	for _, t := range m.GetTasks() {
		if len(t.GetMac()) != 6 || t.GetMtu() > fabric.Longest {
			continue
		}
		p := readPath(id, t.GetPath())
		for _, p.VLAN = range ids(t.GetPath().GetVlans()) {
			list = append(list, fabric.Task{Path: p, MAC: plan.MAC(t.GetMac()), MTU: int(t.GetMtu())})
		}
	}
	return list
}

// Results makes the message of results: those that differ in their VLANs alone are one, with the longest delay.
func Results(list []fabric.Result, deaf []fabric.Deaf) *controllerv1.ProbeResults {
	out := &controllerv1.ProbeResults{}
	at := map[fabric.Result]*controllerv1.ProbeResult{}
	for _, r := range list {
		key := r
		key.VLAN, key.Delay, key.Usual = 0, 0, 0
		one := at[key]
		if one == nil {
			one = &controllerv1.ProbeResult{Path: path(r.Path), State: state(r.State), Full: state(r.Full),
				Fits: uint32(r.Fits), Astray: r.Astray, Loss: uint32(r.Loss)}
			at[key] = one
			out.Results = append(out.Results, one)
		}
		one.Delay = max(one.Delay, uint32(min(r.Delay, time.Minute).Microseconds()))
		one.Path.Vlans = append(one.Path.Vlans, uint32(r.VLAN))
	}
	for _, d := range deaf {
		out.Deaf = append(out.Deaf, &controllerv1.ProbeDeaf{From: d.From[:], To: d.To[:], Vlan: uint32(d.VLAN)})
	}
	slices.SortFunc(out.Results, func(a, b *controllerv1.ProbeResult) int {
		return cmp.Or(cmp.Compare(a.GetPath().GetUplink(), b.GetPath().GetUplink()),
			cmp.Compare(a.GetPath().GetHost(), b.GetPath().GetHost()))
	})
	return out
}

func state(s fabric.State) controllerv1.ProbeState {
	switch s {
	case fabric.Passes:
		return controllerv1.ProbeState_PROBE_STATE_PASSES
	case fabric.Lost, fabric.OneWay:
		return controllerv1.ProbeState_PROBE_STATE_LOST
	}
	return controllerv1.ProbeState_PROBE_STATE_UNSPECIFIED
}

func readState(s controllerv1.ProbeState) fabric.State {
	switch s {
	case controllerv1.ProbeState_PROBE_STATE_PASSES:
		return fabric.Passes
	case controllerv1.ProbeState_PROBE_STATE_LOST:
		return fabric.Lost
	}
	return fabric.Unknown
}

// ReadResults reads the results of a host.
func ReadResults(id string, m *controllerv1.ProbeResults) (list []fabric.Result, deaf []fabric.Deaf) {
	for _, r := range m.GetResults() {
		if p := r.GetPath(); len(list) == fabric.MostTasks || !spec.ValidName(p.GetSwitch()) ||
			!spec.ValidName(p.GetUplink()) || !spec.ValidName(p.GetTo()) || len(p.GetHost()) > mostText {
			continue
		}
		one := fabric.Result{Path: readPath(id, r.GetPath()), State: readState(r.GetState()),
			Full: readState(r.GetFull()), Fits: int(min(r.GetFits(), fabric.Longest)),
			Astray: short(r.GetAstray()), Loss: int(min(r.GetLoss(), 100)),
			Delay: time.Duration(r.GetDelay()) * time.Microsecond}
		for _, one.VLAN = range ids(r.GetPath().GetVlans()) {
			if len(list) == fabric.MostTasks {
				break
			}
			list = append(list, one)
		}
	}
	for _, d := range m.GetDeaf() {
		if len(d.GetFrom()) == 16 && len(d.GetTo()) == 16 && d.GetVlan() < mostVLANs && len(deaf) < fabric.MostTasks {
			deaf = append(deaf, fabric.Deaf{From: fabric.EndID(d.GetFrom()), To: fabric.EndID(d.GetTo()),
				VLAN: uint16(d.GetVlan())})
		}
	}
	return list, deaf
}

// Findings makes the messages of findings.
func Findings(list []fabric.Finding) (out []*controllerv1.NetworkFinding) {
	for _, f := range list {
		out = append(out, &controllerv1.NetworkFinding{Code: string(f.Code), Note: f.Note, Switch: f.Switch,
			Vlans: numbers(f.VLANs), Ends: f.Ends, Others: f.Others, Have: uint32(f.Have), Want: uint32(f.Want),
			Text: f.Text, Remedy: f.Remedy})
	}
	return out
}

// ReadFindings reads findings.
func ReadFindings(list []*controllerv1.NetworkFinding) (out []fabric.Finding) {
	for _, f := range list {
		out = append(out, fabric.Finding{Code: fabric.Code(f.GetCode()), Note: f.GetNote(), Switch: f.GetSwitch(),
			VLANs: ids(f.GetVlans()), Ends: f.GetEnds(), Others: f.GetOthers(), Have: int(f.GetHave()),
			Want: int(f.GetWant()), Text: f.GetText(), Remedy: f.GetRemedy()})
	}
	return out
}

// Tunnels makes the messages of what was found through tunnels.
func Tunnels(list []fabric.Tunnel) (out []*controllerv1.ProbeTunnel) {
	for i := range list {
		t := &list[i]
		out = append(out, &controllerv1.ProbeTunnel{Switch: t.Switch, Own: t.Own.AsSlice(), Peer: t.Peer.AsSlice(),
			PeerHost: t.PeerName, Mtu: uint32(t.MTU), Port: uint32(t.Port), State: state(t.State), Full: state(t.Full),
			Fits: uint32(t.Fits), Delay: micros(t.Delay), Usual: micros(t.Usual), Loss: uint32(t.Loss), Deaf: t.Deaf})
	}
	return out
}

func micros(d time.Duration) uint32 { return uint32(min(max(d, 0), time.Minute).Microseconds()) }

// ReadTunnels reads what a host found through tunnels.
func ReadTunnels(id, name string, list []*controllerv1.ProbeTunnel) (out []fabric.Tunnel) {
	for _, m := range list {
		own, ok := netip.AddrFromSlice(m.GetOwn())
		peer, ok2 := netip.AddrFromSlice(m.GetPeer())
		if !ok || !ok2 || !spec.ValidName(m.GetSwitch()) || own.Is4In6() || peer.Is4In6() || own == peer ||
			len(out) == fabric.MostTasks {
			continue
		}
		t := fabric.Tunnel{Switch: m.GetSwitch(), Host: id, Name: name, Own: own, Peer: peer,
			PeerName: short(m.GetPeerHost()), MTU: int(min(m.GetMtu(), fabric.Longest)),
			Port: int(uint16(m.GetPort())), Deaf: m.GetDeaf()}
		t.State, t.Full = readState(m.GetState()), readState(m.GetFull())
		t.Fits, t.Loss = int(min(m.GetFits(), fabric.Longest)), int(min(m.GetLoss(), 100))
		t.Delay, t.Usual = duration(m.GetDelay()), duration(m.GetUsual())
		out = append(out, t)
	}
	return out
}

func duration(micros uint32) time.Duration {
	return min(time.Duration(micros)*time.Microsecond, time.Minute)
}
