package changes

import (
	"fmt"
	"strings"

	"heddle/internal/plan"
)

// Effects say what a change of plan means for ports, one line per port group and value, in the order of the new plan
// and then of the old one: how many ports come, go and change which effective value.
func Effects(before, after *plan.Plan) []string {
	t := &tally{count: map[string]int{}, names: map[string]string{}, policies: map[policies][]string{}}
	old := portsOf(before)
	for _, sw := range after.Switches {
		for _, p := range sw.Ports {
			was, ok := old[p.ID]
			delete(old, p.ID)
			if !ok {
				t.add(p, "", "is connected", "are connected")
				continue
			}
			t.compare(was, p)
		}
	}
	for _, sw := range before.Switches {
		for _, p := range sw.Ports {
			if _, gone := old[p.ID]; gone {
				t.add(p, "", "is disconnected", "are disconnected")
			}
		}
	}
	return t.lines()
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

// tally counts ports that share a line.
type tally struct {
	order []string
	count map[string]int
	names map[string]string // of the only port of a line so far
	// policies are what one policy that ports share has otherwise than another.
	policies map[policies][]string
}

type policies struct{ was, now *plan.Effective }

// add counts a port under its port group and the text, given for one port and for several.
func (t *tally) add(p *plan.Port, what, one, several string) {
	key := strings.Join([]string{p.ID.Switch, p.PortGroup, what, one, several}, "\x00")
	if t.count[key] == 0 {
		t.order = append(t.order, key)
	}
	t.count[key]++
	t.names[key] = p.ID.Name
}

func (t *tally) compare(was, now *plan.Port) {
	if was.PortGroup != now.PortGroup {
		text := "from port group " + was.PortGroup
		t.add(now, "", "moves "+text, "move "+text)
	}
	if was.Device != now.Device {
		text := fmt.Sprintf("device %s → %s", said(was.Device), said(now.Device))
		t.add(now, "changes", text, text)
	}
	key := policies{was.Policy, now.Policy}
	texts, known := t.policies[key]
	if !known {
		texts = between(was, now)
		t.policies[key] = texts
	}
	for _, text := range texts {
		t.add(now, "changes", text, text)
	}
}

// between says which effective values of a policy are other ones.
func between(was, now *plan.Port) (texts []string) {
	old := map[string]string{}
	for _, r := range was.Rows() {
		old[r.Policy] = r.Value.String()
	}
	for _, r := range now.Rows() {
		if v, is := old[r.Policy], r.Value.String(); v != is {
			texts = append(texts, fmt.Sprintf("%s %s → %s", r.Policy, said(v), said(is)))
		}
	}
	return texts
}

func said(v string) string {
	if v == "" {
		return "none"
	}
	return v
}

func (t *tally) lines() []string {
	var out []string
	for _, key := range t.order {
		f := strings.Split(key, "\x00")
		who, verb, text := "port "+t.names[key]+" of port group "+f[0]+"/"+f[1], "changes ", f[3]
		if n := t.count[key]; n > 1 {
			who, verb, text = fmt.Sprintf("%d ports of port group %s/%s", n, f[0], f[1]), "change ", f[4]
		}
		if f[2] == "" {
			verb = ""
		}
		out = append(out, who+" "+verb+text)
	}
	return out
}
