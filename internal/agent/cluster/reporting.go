package cluster

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// reported is what a controller knows of what the host has.
type reported struct {
	ports    map[portKey]string // each as it was sent
	warnings []string
	switches []string // each as it was sent
}

type portKey struct{ sw, name string }

func reportedBy(r *controllerv1.HostReport) (*reported, error) {
	k := &reported{ports: map[portKey]string{}}
	_, err := k.change(r)
	return k, err
}

// change takes in what the host has now, and is what makes the controller know it; nil where it knows it already.
func (k *reported) change(now *controllerv1.HostReport) (*controllerv1.HostReportChange, error) {
	c := &controllerv1.HostReportChange{Warnings: now.GetWarnings(), Switches: now.GetSwitches()}
	there := make(map[portKey]struct{}, len(now.GetPorts()))
	var wire []byte
	for _, p := range now.GetPorts() {
		var err error
		if wire, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(wire[:0], p); err != nil {
			return nil, err
		}
		key := portKey{p.GetSwitch(), p.GetName()}
		there[key] = struct{}{}
		if was, ok := k.ports[key]; !ok || was != string(wire) {
			k.ports[key] = string(wire)
			c.Put = append(c.Put, p)
		}
	}
	if len(k.ports) > len(there) {
		for key := range k.ports {
			if _, ok := there[key]; !ok {
				delete(k.ports, key)
				c.Removed = append(c.Removed, &controllerv1.HostPortKey{Switch: key.sw, Name: key.name})
			}
		}
		slices.SortFunc(c.Removed, func(a, b *controllerv1.HostPortKey) int {
			return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Name, b.Name))
		})
	}
	switches, err := texts(now.GetSwitches())
	if err != nil {
		return nil, err
	}
	if len(c.Put)+len(c.Removed) == 0 && slices.Equal(k.warnings, c.Warnings) && slices.Equal(k.switches, switches) {
		return nil, nil
	}
	k.warnings, k.switches = c.Warnings, switches
	return c, nil
}

// texts are switches as they are sent.
func texts(list []*controllerv1.HostSwitch) (out []string, err error) {
	for _, sw := range list {
		wire, err := (proto.MarshalOptions{Deterministic: true}).Marshal(sw)
		if err != nil {
			return nil, err
		}
		out = append(out, string(wire))
	}
	return out, nil
}
