package changes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// object is one object of a configuration with its fields, in the order of the file format.
type object struct {
	ref    api.ObjectRef
	fields []field
	// leftOut are the values of fields that the file leaves out.
	leftOut leftOut
}

// field is a field that the file sets: its value as text, which is compared, and as a typed value.
type field struct {
	path, value string
	typed       plan.FieldValue
}

// Between lists what turns one configuration into the other, object by object and field by field: first what is
// removed, then what changes or is added, in the order of the new file. A field that is written out or left out but
// means the same as before is no change.
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
	old := make(map[api.ObjectRef]object, len(have))
	for _, o := range have {
		old[o.identity()] = o
	}
	kept := make(map[api.ObjectRef]bool, len(want))
	var coming []api.Change
	for _, o := range want {
		kept[o.identity()] = true
		was, existed := old[o.identity()]
		if !existed {
			coming = append(coming, api.Change{Kind: api.Added, Object: o.ref})
		}
		coming = append(coming, diffFields(was, o)...)
	}
	changes := []api.Change{}
	for _, o := range have {
		if !kept[o.identity()] {
			changes = append(changes, api.Change{Kind: api.Removed, Object: o.ref})
		}
	}
	return append(changes, coming...), nil
}

// identity identifies an object across two configurations: a port's name is unique on the host, so that a port may
// change its switch.
func (o object) identity() api.ObjectRef {
	if o.ref.Kind == api.PortObject {
		return api.ObjectRef{Kind: o.ref.Kind, Name: o.ref.Name}
	}
	return o.ref
}

// withoutShared leaves out ports that the two configurations share in memory (spec.ParseAfter): a port that is written
// alike has no change of its own.
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
		_, had := old[f.path]
		delete(old, f.path)
		switch {
		case sameValue(f.path, was.value(f.path), f.value):
		case !had:
			changes = append(changes, api.Change{Kind: api.Added, Object: now.ref, Field: f.path, New: f.typed,
				Unit: unitOf(f.path)})
		default:
			changes = append(changes, api.Change{Kind: api.Changed, Object: now.ref, Field: f.path,
				Old: was.typed(f.path), New: f.typed, Unit: unitOf(f.path)})
		}
	}
	for _, f := range was.fields {
		if v, gone := old[f.path]; gone && !sameValue(f.path, v, now.value(f.path)) {
			changes = append(changes, api.Change{Kind: api.Removed, Object: now.ref, Field: f.path, Old: f.typed,
				Unit: unitOf(f.path)})
		}
	}
	return changes
}

// typed returns the value that the file gives the field.
func (o object) typed(path string) plan.FieldValue {
	for _, f := range o.fields {
		if f.path == path {
			return f.typed
		}
	}
	return plan.FieldValue{}
}

// objects lists a configuration's objects; a nil configuration has none.
func objects(cfg *spec.Config) ([]object, error) {
	if cfg == nil {
		return nil, nil
	}
	l := list{groups: map[[2]string]leftOut{}, mtus: map[string]int{}}
	if _, err := l.add(api.ObjectRef{Kind: api.HostObject}, cfg.Host, nil); err != nil {
		return nil, err
	}
	for i := range cfg.Switches {
		if err := l.addSwitch(&cfg.Switches[i]); err != nil {
			return nil, err
		}
	}
	for _, p := range cfg.Ports {
		ref := api.ObjectRef{Kind: api.PortObject, Switch: p.Switch, Name: p.Name}
		inherits := ofPort(p, l.mtus[p.Switch], l.groups[[2]string{p.Switch, p.PortGroup}])
		p.Name = ""
		if _, err := l.add(ref, p, inherits); err != nil {
			return nil, err
		}
	}
	return l.all, nil
}

// list collects objects. groups are the policies that the ports of a port group inherit, by switch and port group; mtus
// are the MTUs of switches, in bytes.
type list struct {
	all    []object
	groups map[[2]string]leftOut
	mtus   map[string]int
}

func (l *list) add(ref api.ObjectRef, v any, inherits leftOut) (object, error) {
	o := object{ref: ref, leftOut: inherits}
	b, err := json.Marshal(v)
	if err == nil {
		o.fields, err = flatten("", b)
	}
	if err != nil {
		return o, fmt.Errorf("compare %s: %w", ref, err)
	}
	l.all = append(l.all, o)
	return o, nil
}

func (l *list) addSwitch(s *spec.Switch) error {
	alone, policy := *s, builtInPolicy(s)
	alone.Name, alone.Uplinks, alone.PortGroups = "", nil, nil
	o, err := l.add(api.ObjectRef{Kind: api.SwitchObject, Name: s.Name}, alone, ofSwitch(policy))
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
		ref := api.ObjectRef{Kind: api.UplinkObject, Switch: s.Name, Name: u.Name}
		u.Name = ""
		if _, err := l.add(ref, u, ofUplink(s)); err != nil {
			return err
		}
	}
	for _, g := range s.PortGroups {
		ref := api.ObjectRef{Kind: api.PortGroupObject, Switch: s.Name, Name: g.Name}
		group := [2]string{s.Name, g.Name}
		inherits := policy.below(leftOut{"overrides.blocked": "true", "overrides.resetAtDisconnect": "true"})
		g.Name = ""
		o, err := l.add(ref, g, inherits)
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
		f, err := leaf(prefix, b)
		if f.value == "" || err != nil {
			return nil, err
		}
		return []field{f}, nil
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

// leaf returns the field at path, whose value is not an object.
func leaf(path string, b []byte) (field, error) {
	f := field{path: path}
	if err := json.Unmarshal(b, &f.typed); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	if f.typed.Any() == nil {
		return f, nil
	}
	if f.value = f.typed.Flow(); isDuration(path) {
		if d, err := time.ParseDuration(f.value); err == nil {
			f.typed = plan.FieldValueOf(d)
		}
	}
	return f, nil
}
