// Package changes says in the user's words what turns one configuration, or one plan, into another.
package changes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"heddle/internal/api"
	"heddle/internal/spec"
)

// object is one object of a configuration with its fields as text, in the order of the file format.
type object struct {
	name   string
	fields []field
	// leftOut is what fields have that the file leaves out.
	leftOut leftOut
}

type field struct{ path, value string }

// Between lists what turns one configuration into the other, object by object and field by field: what goes first, then
// what changes or comes, in the order of the new file. A field that is written out, or left out, and means the same as
// before is no change.
func Between(from, to *spec.Config) ([]api.Change, error) {
	from, to = withoutShared(from, to)
	have, err := objects(from)
	if err != nil {
		return nil, err
	}
	want, err := objects(to)
	if err != nil {
		return nil, err
	}
	old := make(map[string]object, len(have))
	for _, o := range have {
		old[o.name] = o
	}
	kept := make(map[string]bool, len(want))
	var coming []api.Change
	for _, o := range want {
		kept[o.name] = true
		was, existed := old[o.name]
		if !existed {
			coming = append(coming, api.Change{Kind: api.Added, Object: o.name})
		}
		coming = append(coming, diffFields(was, o)...)
	}
	changes := []api.Change{}
	for _, o := range have {
		if !kept[o.name] {
			changes = append(changes, api.Change{Kind: api.Removed, Object: o.name})
		}
	}
	return append(changes, coming...), nil
}

// withoutShared leaves out ports that the two have in common (spec.ParseAfter): a port that is written alike has no
// change of its own.
func withoutShared(from, to *spec.Config) (*spec.Config, *spec.Config) {
	if from == nil || to == nil || !spec.SamePorts(from.Ports, to.Ports) {
		return from, to
	}
	a, b := *from, *to
	a.Ports, b.Ports = nil, nil
	return &a, &b
}

func diffFields(was, now object) []api.Change {
	old := was.own()
	var changes []api.Change
	for _, f := range now.fields {
		v, had := old[f.path]
		delete(old, f.path)
		switch {
		case sameValue(f.path, was.value(f.path), f.value):
		case !had:
			changes = append(changes, api.Change{Kind: api.Added, Object: now.name, Field: f.path, New: f.value})
		default:
			changes = append(changes, api.Change{Kind: api.Changed, Object: now.name, Field: f.path, Old: v,
				New: f.value})
		}
	}
	for _, f := range was.fields {
		if v, gone := old[f.path]; gone && !sameValue(f.path, v, now.value(f.path)) {
			changes = append(changes, api.Change{Kind: api.Removed, Object: now.name, Field: f.path, Old: v})
		}
	}
	return changes
}

// objects lists a configuration's objects; a nil configuration has none.
func objects(cfg *spec.Config) ([]object, error) {
	if cfg == nil {
		return nil, nil
	}
	l := list{groups: map[[2]string]leftOut{}, mtus: map[string]int{}}
	if _, err := l.add("host", cfg.Host, nil); err != nil {
		return nil, err
	}
	for i := range cfg.Switches {
		if err := l.addSwitch(&cfg.Switches[i]); err != nil {
			return nil, err
		}
	}
	for _, p := range cfg.Ports {
		name, inherits := "port "+p.Name, ofPort(p, l.mtus[p.Switch], l.groups[[2]string{p.Switch, p.PortGroup}])
		p.Name = ""
		if _, err := l.add(name, p, inherits); err != nil {
			return nil, err
		}
	}
	return l.all, nil
}

// list gathers objects; groups are the policies that ports of a port group inherit, by switch and port group, mtus
// those of switches.
type list struct {
	all    []object
	groups map[[2]string]leftOut
	mtus   map[string]int
}

func (l *list) add(name string, v any, inherits leftOut) (object, error) {
	o := object{name: name, leftOut: inherits}
	b, err := json.Marshal(v)
	if err == nil {
		o.fields, err = flatten("", b)
	}
	if err != nil {
		return o, fmt.Errorf("compare %s: %w", name, err)
	}
	l.all = append(l.all, o)
	return o, nil
}

func (l *list) addSwitch(s *spec.Switch) error {
	alone, policy := *s, builtInPolicy(s)
	alone.Name, alone.Uplinks, alone.PortGroups = "", nil, nil
	o, err := l.add("switch "+s.Name, alone, ofSwitch(policy))
	if err != nil {
		return err
	}
	defaults := leftOut{}
	for path, v := range o.own() {
		if inner, ok := strings.CutPrefix(path, "defaults."); ok {
			defaults[inner] = v
		}
	}
	policy = policy.below(defaults)
	l.mtus[s.Name] = s.ActualMTU()
	for _, u := range s.Uplinks {
		name := "uplink " + s.Name + "/" + u.Name
		u.Name = ""
		if _, err := l.add(name, u, ofUplink(s)); err != nil {
			return err
		}
	}
	for _, g := range s.PortGroups {
		name, group := "port group "+s.Name+"/"+g.Name, [2]string{s.Name, g.Name}
		inherits := policy.below(leftOut{"overrides.blocked": "true", "overrides.resetAtDisconnect": "true"})
		g.Name = ""
		o, err := l.add(name, g, inherits)
		if err != nil {
			return err
		}
		l.groups[group] = policy.below(o.own())
	}
	return nil
}

// flatten lists the leaves of a JSON object as paths and texts; lists of values are leaves. Empty strings are left out.
func flatten(prefix string, b []byte) ([]field, error) {
	if !bytes.HasPrefix(b, []byte("{")) {
		text, err := leaf(b)
		if text == "" || err != nil {
			return nil, err
		}
		return []field{{prefix, text}}, nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var fields []field
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		inner, err := flatten(strings.TrimPrefix(fmt.Sprintf("%s.%v", prefix, key), "."), v)
		if err != nil {
			return nil, err
		}
		fields = append(fields, inner...)
	}
	return fields, nil
}

// leaf is a value that is no object, as text.
func leaf(b []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return flowText(d)
}

// flowText reads one value and writes it as YAML would in one line, {name: lag1, uplinks: [a, b]}, with its fields in
// their order.
func flowText(d *json.Decoder) (string, error) {
	t, err := d.Token()
	if err != nil {
		return "", err
	}
	open, isList := t.(json.Delim)
	if !isList {
		return fmt.Sprint(t), nil
	}
	var parts []string
	for d.More() {
		key := ""
		if open == '{' {
			if t, err = d.Token(); err != nil {
				return "", err
			}
			key = fmt.Sprint(t) + ": "
		}
		v, err := flowText(d)
		if err != nil {
			return "", err
		}
		parts = append(parts, key+v)
	}
	if t, err = d.Token(); err != nil {
		return "", err
	}
	return fmt.Sprint(open) + strings.Join(parts, ", ") + fmt.Sprint(t), nil
}
