package moves

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/slice"
)

// Port is a port of an adapter as a host has reported it last.
type Port struct {
	*controllerv1.HostPort
	Host      string // its name
	Connected bool
	// Meant is the host's id, which it is told with whose port a call means; "" where its agent does not know that.
	Meant string
}

func (p Port) adapter() part.Adapter { return part.AdapterOf(p.GetVm(), p.GetAdapter()) }

// identity is what its host is told that it must be: another port may have its name by then. It is nil for a host that
// is told the name alone.
func (p Port) identity() *agentv1.PortIdentity {
	if p.Meant == "" {
		return nil
	}
	return &agentv1.PortIdentity{Host: p.Meant, Switch: p.GetSwitch(), Vm: p.GetVm(), Adapter: p.GetAdapter(),
		Device: p.GetDevice()}
}

// runs reports whether the guest runs by the port there, as far as the host knows.
func (p Port) runs() bool { return !p.GetWaits() && !p.GetAbsent() }

// named reports whether the text names the port: by its name, or as VM/ADAPTER.
func (p Port) named(text string) bool {
	i := strings.LastIndexByte(text, '/')
	return p.GetName() == text ||
		i > 0 && p.GetVm() == strings.ToLower(text[:i]) && p.GetAdapter() == text[i+1:]
}

// Move is a port that goes from host to host.
type Move struct {
	id       string // of the move; "" until a host has told it
	adapter  part.Adapter
	from, to string // hosts
	meant    string // as that of a Port, of the target
	port     Port
	sw, name string
	group    string
	// device that its guest gets at the target.
	device string
	// uplink: the source reaches the physical network.
	uplink bool
	// macs is how many MACs the port has learned at the source, flows how many of its flows are metered there.
	macs, flows int32
}

// Request is what prepares the port at the target.
func (m *Move) Request(q *controllerv1.MovePortRequest) *agentv1.ConnectIncomingPortRequest {
	p := m.port
	return &agentv1.ConnectIncomingPortRequest{Vm: m.adapter.VM, Adapter: m.adapter.Name, PortId: p.GetPort(),
		Needs: q.GetNeeds(), Force: q.GetForce(), NeedsUplink: m.uplink, Macs: m.macs,
		Flows: m.flows, Host: m.meant,
		Port: &agentv1.PortSpec{Name: m.name, Switch: m.sw, PortGroup: m.group, Mac: p.GetMac(),
			Device: m.device}}
}

// Planned is the move that is asked for, if it can be.
func (s Service) Planned(ctx context.Context, q *controllerv1.MovePortRequest) (*Move, error) {
	if q.GetPort() == "" || q.GetTo() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, "say which port moves, and to which host")
	}
	there := s.Look(ctx, false)
	all := there.Ports
	p, err := sourceOf(all, q.GetPort(), q.GetHost())
	if err != nil {
		return nil, err
	}
	if err := operates(ctx, p.GetSwitch(), p.GetPortGroup()); err != nil {
		return nil, err
	}
	m := &Move{adapter: p.adapter(), from: p.Host, to: q.GetTo(), port: p, sw: p.GetSwitch(), name: p.GetName(),
		group: p.GetPortGroup(), device: cmp.Or(q.GetDevice(), p.GetDevice())}
	switch {
	case m.adapter.VM == "":
		return nil, refusedMove("nobody said whose port %s is, so that no other host knows it: connect it with the "+
			"VM's UUID and the adapter's name (--vm-uuid, --adapter)", m.name)
	case m.from == m.to:
		return nil, refusedMove("port %s is on host %s already", m.name, m.to)
	}
	for _, o := range all {
		if o.Host != m.to {
			continue
		}
		if err := m.displaces(ctx, o); err != nil {
			return nil, err
		}
	}
	return m, m.served(there, q.GetForce())
}

// displaces refuses a move that would take something from a port of the target: from another guest's, whatever it is
// called, and from one of this adapter in a port group that the caller does not operate.
func (m *Move) displaces(ctx context.Context, o Port) error {
	switch {
	case o.adapter() == m.adapter && o.runs():
		return refusedMove("port %s of VM %s runs on host %s too: stop one of the two guests first", o.GetName(),
			m.adapter.VM, m.to)
	case o.adapter() == m.adapter:
		return operates(ctx, o.GetSwitch(), o.GetPortGroup())
	case o.GetName() == m.name:
		return refusedMove("host %s has a port %s of another guest: disconnect that first", m.to, m.name)
	case m.device != "" && o.GetDevice() == m.device:
		return refusedMove("port %s cannot have device %s on host %s: port %s has it; say which device its guest gets "+
			"there (--device)", m.name, m.device, m.to, o.GetName())
	}
	return nil
}

// sourceOf is the port that moves: where its guest runs.
func sourceOf(all []Port, port, host string) (Port, error) {
	var found []Port
	waits := ""
	for _, p := range all {
		if !p.named(port) || host != "" && p.Host != host {
			continue
		}
		if !p.runs() {
			waits = p.Host
			continue
		}
		found = append(found, p)
	}
	switch {
	case len(found) == 1 && !found[0].Connected:
		return Port{}, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("host %s, which had port %s "+
			"last, is not connected to a controller", found[0].Host, port))
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var hosts []string
		for _, p := range found {
			hosts = append(hosts, p.Host)
		}
		return Port{}, refusedMove("several hosts have a port %s: say which one moves, by its host (%s)", port,
			strings.Join(hosts, ", "))
	case waits != "":
		return Port{}, refusedMove("no guest runs by port %s on host %s: its port has no device, or waits for "+
			"its guest", port, waits)
	}
	return Port{}, connect.NewError(connect.CodeNotFound, fmt.Sprintf("no host has a port %s: see heddle port "+
		"list --controller", port))
}

// served reports by an error what the target lacks for the port. force passes over what would merely serve the port
// worse.
func (m *Move) served(there *Sight, force bool) error {
	to, err := there.Host(m.to)
	switch {
	case err != nil:
		return err
	case to == nil:
		return connect.NewError(connect.CodeNotFound, fmt.Sprintf("the cluster has no host %q: see heddle host list",
			m.to))
	}
	m.meant = to.Meant
	if to.Shown.GetStale() || to.Shown.GetState() == controllerv1.HostState_HOST_STATE_DISCONNECTED {
		return connect.NewError(connect.CodeUnavailable, fmt.Sprintf("host %s is not connected to a controller", m.to))
	}
	if group := m.sw + "/" + m.group; !to.serves(group) {
		return refusedMove("host %s does not serve port group %s: give it the switch (heddle apply --controller), or "+
			"choose another host", m.to, group)
	}
	from, err := there.Host(m.from)
	if err != nil {
		return err
	}
	if from != nil {
		m.uplink = from.Isolated(m.sw) == ""
	}
	if force {
		return nil
	}
	if why := to.Isolated(m.sw); why != "" && m.uplink {
		return refusedMove("host %s has no usable uplink of switch %s, as host %s has: %s (--force moves "+
			"the port even so)", m.to, m.sw, m.from, why)
	}
	if why := to.LessProtected(m.sw, m.group); why != "" {
		return refusedMove("%s, or use --force", why)
	}
	return nil
}

// LessProtected says why a port of a port group would be less protected on the host; "" for nothing.
func (h *Host) LessProtected(sw, group string) string {
	own := map[slice.Kind]string{slice.PortGroup: sw + "/" + group, slice.Switch: sw}
	for _, l := range h.Lacks {
		if of, named := own[l.Key.Kind]; l.Security() && (!named || of == l.Key.Name) {
			return fmt.Sprintf("the agent of host %s does not know %s, so that the port would be less protected "+
				"there: update the host", h.Shown.GetName(), l)
		}
	}
	return ""
}

// waitingAt is the move of a port whose guest does not run at the target yet.
func (s Service) waitingAt(ctx context.Context, port, host string) (*Move, error) {
	if port == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, "say which port")
	}
	there := s.Look(ctx, false)
	var found []*Move
	arrived := "" // the host where its guest came a moment ago
	for _, p := range there.Ports {
		if p.GetArrived() && p.named(port) && (host == "" || p.Host == host) {
			arrived = p.Host
		}
		if !p.GetWaits() || host != "" && p.Host != host || !p.Connected || !p.named(port) {
			continue
		}
		if host == "" { // the one that the guest has left waits, too
			list, err := s.movesOf(ctx, p.Host, p.GetName())
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(list, open) {
				continue
			}
		}
		found = append(found, &Move{adapter: p.adapter(), to: p.Host, port: p, sw: p.GetSwitch(), name: p.GetName(),
			group: p.GetPortGroup()})
	}
	switch len(found) {
	case 0:
		return nil, nobodyWaits(port, arrived)
	case 1:
		return found[0], operates(ctx, found[0].sw, found[0].group)
	}
	var hosts []string
	for _, m := range found {
		hosts = append(hosts, m.to)
	}
	return nil, refusedMove("several hosts wait for the guest of port %s: say which (%s)", port,
		strings.Join(hosts, ", "))
}
