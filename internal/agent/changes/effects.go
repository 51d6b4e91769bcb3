package changes

import (
	"fmt"

	"heddle/internal/api"
	"heddle/internal/plan"
)

// Effects lists what a change of plan means for ports, one effect for each port group and value, in the order of the
// new plan and then of the old one: how many ports are added, removed, or change which effective value.
func Effects(before, after *plan.Plan) []api.Effect {
	t := &tally{at: map[key]int{}, policies: map[policies][]api.Effect{}}
	old := portsOf(before)
	for _, sw := range after.Switches {
		for _, p := range sw.Ports {
			was, ok := old[p.ID]
			delete(old, p.ID)
			if !ok {
				t.add(p, api.Effect{Kind: api.EffectConnected})
				continue
			}
			t.compare(was, p)
		}
	}
	for _, sw := range before.Switches {
		for _, p := range sw.Ports {
			if _, gone := old[p.ID]; gone {
				t.add(p, api.Effect{Kind: api.EffectDisconnected})
			}
		}
	}
	for i := range t.list {
		t.list[i].Text = text(&t.list[i])
	}
	return t.list
}

func portsOf(p *plan.Plan) map[plan.PortID]*plan.Port {
	all := map[plan.PortID]*plan.Port{}
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			all[port.ID] = port
		}
	}
	return all
}

// tally counts the ports that share an effect.
type tally struct {
	list []api.Effect
	at   map[key]int // index of an effect in the list
	// policies are the differences between two policies, for ports that share both.
	policies map[policies][]api.Effect
}

// key identifies an effect that several ports share; values are compared by their text.
type key struct {
	kind              api.EffectKind
	sw, group         string
	field, value, was string
}

type policies struct{ was, now *plan.Effective }

// add counts a port that has the effect.
func (t *tally) add(p *plan.Port, e api.Effect) {
	k := key{e.Kind, p.ID.Switch, p.PortGroup, e.Field, e.New.String(), e.Old.String()}
	i, known := t.at[k]
	if !known {
		i = len(t.list)
		t.at[k] = i
		e.Switch, e.PortGroup, e.Port = p.ID.Switch, p.PortGroup, p.ID.Name
		t.list = append(t.list, e)
	}
	if t.list[i].Ports++; t.list[i].Ports > 1 {
		t.list[i].Port = ""
	}
}

func (t *tally) compare(was, now *plan.Port) {
	if was.PortGroup != now.PortGroup {
		t.add(now, api.Effect{Kind: api.EffectChanged, Field: portGroupField, Old: plan.FieldValueOf(was.PortGroup),
			New: plan.FieldValueOf(now.PortGroup)})
	}
	if was.Device != now.Device {
		t.add(now, api.Effect{Kind: api.EffectChanged, Field: "device", Old: plan.FieldValueOf(was.Device),
			New: plan.FieldValueOf(now.Device)})
	}
	if was.VNI != now.VNI {
		t.add(now, api.Effect{Kind: api.EffectChanged, Field: "overlay.vni", Old: segment(was), New: segment(now)})
	}
	key := policies{was.Policy, now.Policy}
	effects, known := t.policies[key]
	if !known {
		effects = between(was, now)
		t.policies[key] = effects
	}
	for _, e := range effects {
		t.add(now, e)
	}
}

// segment is the VNI of a port; "" for none.
func segment(p *plan.Port) plan.FieldValue {
	if p.VNI == 0 {
		return plan.FieldValueOf("")
	}
	return plan.FieldValueOf(int(p.VNI))
}

// between lists which effective values differ between the two policies.
func between(was, now *plan.Port) (effects []api.Effect) {
	old := map[string]plan.FieldValue{}
	for _, r := range was.Rows() {
		old[r.Policy] = r.Value
	}
	for _, r := range now.Rows() {
		if v := old[r.Policy]; v.String() != r.Value.String() {
			effects = append(effects, api.Effect{Kind: api.EffectChanged, Field: r.Policy, Old: v, New: r.Value,
				Unit: r.Unit})
		}
	}
	return effects
}

// portGroupField is the field of a port that moves.
const portGroupField = "portGroup"

// text describes the effect for people.
func text(e *api.Effect) string {
	who, is, change, move := fmt.Sprintf("port %s of port group %s/%s", e.Port, e.Switch, e.PortGroup), "is", "changes",
		"moves"
	if e.Ports > 1 {
		who, is, change, move = fmt.Sprintf("%d ports of port group %s/%s", e.Ports, e.Switch, e.PortGroup), "are",
			"change", "move"
	}
	switch {
	case e.Kind != api.EffectChanged:
		return fmt.Sprintf("%s %s %s", who, is, e.Kind)
	case e.Field == portGroupField:
		return fmt.Sprintf("%s %s from port group %s", who, move, e.Old)
	}
	return fmt.Sprintf("%s %s %s %s → %s", who, change, e.Field, said(e.Old), said(e.New))
}

func said(v plan.FieldValue) string {
	if text := v.String(); text != "" {
		return text
	}
	return "none"
}
