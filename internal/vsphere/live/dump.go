package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"heddle/internal/spec/printable"
)

// mostObjects bounds what is read: 100 switches with 1,000 port groups each are 100,100 objects.
const mostObjects = 1_000_000

// portsAtOnce is how many uplink ports one call asks for.
const portsAtOnce = 500

// kind is a type of object that is read.
type kind struct {
	name, word string
	properties []string
	page       int32 // objects of one answer
}

// kinds are what the import needs, in the order of the dump.
func kinds() []kind {
	return []kind{
		{"DistributedVirtualSwitch", "switch", []string{"name", "config"}, 1},
		{"DistributedVirtualPortgroup", "port group", []string{"name", "config"}, 100},
		{"HostSystem", "host", []string{"name", "config.network"}, 20},
	}
}

// reader writes what it reads of a vCenter.
type reader struct {
	client   *vim25.Client
	to       io.Writer
	progress func(kind string, n int)
	objects  int
}

// Dump writes the distributed switches of a vCenter, with their port groups, hosts and uplink ports, to w. It holds one
// page of objects at a time. The error says what to do; what was written until then is no whole dump.
func Dump(ctx context.Context, o Options, w io.Writer) error {
	c, end, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer end()
	r := &reader{client: c, to: w, progress: o.Progress}
	if r.progress == nil {
		r.progress = func(string, int) {}
	}
	for _, k := range kinds() {
		if err := r.all(ctx, k); err != nil {
			return explain(err, c.URL(), o.User)
		}
	}
	return nil
}

// all reads the objects of a kind, page by page.
func (r *reader) all(ctx context.Context, k kind) error {
	content := r.client.ServiceContent
	if content.ViewManager == nil {
		return errors.New("this server has no views: is it a vCenter?")
	}
	view, err := methods.CreateContainerView(ctx, r.client, &types.CreateContainerView{This: *content.ViewManager,
		Container: content.RootFolder, Type: []string{k.name}, Recursive: true})
	if err != nil {
		return err
	}
	page, err := methods.RetrievePropertiesEx(ctx, r.client, &types.RetrievePropertiesEx{
		This: content.PropertyCollector,
		SpecSet: []types.PropertyFilterSpec{{
			PropSet: []types.PropertySpec{{Type: k.name, PathSet: k.properties}},
			ObjectSet: []types.ObjectSpec{{Obj: view.Returnval, Skip: types.NewBool(true), SelectSet: []types.
				BaseSelectionSpec{&types.TraversalSpec{Type: "ContainerView", Path: "view"}}}}}},
		Options: types.RetrieveOptions{MaxObjects: k.page}})
	if err != nil {
		return err
	}
	for n, result := 0, page.Returnval; result != nil; {
		if result.Token != "" && len(result.Objects) == 0 {
			return fmt.Errorf("it sends pages without a %s, and no end", k.word)
		}
		if err := r.page(ctx, k, result.Objects); err != nil {
			return err
		}
		n += len(result.Objects)
		r.progress(k.word, n)
		if result.Token == "" {
			break
		}
		next, err := methods.ContinueRetrievePropertiesEx(ctx, r.client, &types.ContinueRetrievePropertiesEx{
			This: content.PropertyCollector, Token: result.Token})
		if err != nil {
			return err
		}
		result = &next.Returnval
	}
	_, err = methods.DestroyView(ctx, r.client, &types.DestroyView{This: view.Returnval})
	return err
}

// page writes the objects of a page.
func (r *reader) page(ctx context.Context, k kind, objects []types.ObjectContent) error {
	if r.objects += len(objects); r.objects > mostObjects {
		return fmt.Errorf("it has more than %d objects", mostObjects)
	}
	for _, o := range objects {
		for _, m := range o.MissingSet {
			if m.Path == "config" {
				return fmt.Errorf("it does not let us read the config of %s %s: give the user the role Read-only on "+
					"the vCenter, with all children", k.word, printable.Short(o.Obj.Value, 100))
			}
		}
		if err := r.write(asDumped(o)); err != nil {
			return err
		}
		for _, p := range o.PropSet {
			var err error
			switch c := p.Val.(type) {
			case types.VMwareDVSConfigInfo:
				err = r.uplinks(ctx, o.Obj, c.Host)
			case types.DVSConfigInfo:
				err = r.uplinks(ctx, o.Obj, c.Host)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// dumped is an object as the dump has it.
type dumped struct {
	Self   types.ManagedObjectReference `json:"self"`
	Name   string                       `json:"name"`
	Config types.AnyType                `json:"config,omitempty"`
}

// hostConfig is what is read of the config of a host.
type hostConfig struct {
	Network types.AnyType `json:"network"`
}

func asDumped(o types.ObjectContent) dumped {
	to := dumped{Self: o.Obj}
	for _, p := range o.PropSet {
		switch p.Name {
		case "name":
			to.Name, _ = p.Val.(string)
		case "config":
			to.Config = p.Val
		case "config.network":
			to.Config = hostConfig{p.Val}
		}
	}
	return to
}

// write writes an object in JSON, as govc does.
func (r *reader) write(o any) error {
	var b bytes.Buffer
	if err := types.NewJSONEncoder(&b).Encode(o); err != nil {
		return err
	}
	_, err := r.to.Write(b.Bytes())
	return err
}

// portList is how govc dvs.portgroup.info -json writes ports.
type portList struct {
	Port []types.DistributedVirtualPort `json:"port"`
}

// uplinks writes the uplink ports of the cards that a switch's members have.
func (r *reader) uplinks(ctx context.Context, of types.ManagedObjectReference,
	members []types.DistributedVirtualSwitchHostMember) error {
	var keys []string
	for _, m := range members {
		if b, ok := m.Config.Backing.(*types.DistributedVirtualSwitchHostMemberPnicBacking); ok && b != nil {
			for _, card := range b.PnicSpec {
				if card.UplinkPortKey != "" {
					keys = append(keys, card.UplinkPortKey)
				}
			}
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), portsAtOnce)
		got, err := methods.FetchDVPorts(ctx, r.client, &types.FetchDVPorts{This: of,
			Criteria: &types.DistributedVirtualSwitchPortCriteria{PortKey: keys[:n]}})
		if err != nil {
			return err
		}
		var list portList
		for _, p := range got.Returnval {
			list.Port = append(list.Port, types.DistributedVirtualPort{Key: p.Key, DvsUuid: p.DvsUuid,
				Config: types.DVPortConfigInfo{Name: p.Config.Name}})
		}
		if err := r.write(list); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
