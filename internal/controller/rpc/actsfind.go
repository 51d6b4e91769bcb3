package rpc

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/slice"
)

// reportedPort is a port of an adapter as a host has reported it last.
type reportedPort struct {
	*controllerv1.HostPort
	host      string
	connected bool
	// meant is the host's id, which it is told with whose port a call means; "" where its agent does not know that.
	meant string
}

func (p reportedPort) nic() nic { return nic{p.GetVm(), p.GetAdapter()} }

// identity is what its host is told that it must be: another port may have its name by then. It is nil for a host that
// is told the name alone.
func (p reportedPort) identity() *agentv1.PortIdentity {
	if p.meant == "" {
		return nil
	}
	return &agentv1.PortIdentity{Host: p.meant, Switch: p.GetSwitch(), Vm: p.GetVm(), Adapter: p.GetAdapter(),
		Device: p.GetDevice()}
}

// runs reports whether the guest runs by the port there, as far as the host knows.
func (p reportedPort) runs() bool { return !p.GetWaits() && !p.GetAbsent() }

// named reports whether the text names the port: by its name, or as VM/ADAPTER.
func (p reportedPort) named(text string) bool {
	i := strings.LastIndexByte(text, '/')
	return p.GetName() == text ||
		i > 0 && p.GetVm() == strings.ToLower(text[:i]) && p.GetAdapter() == text[i+1:]
}

// instances are the ports of all hosts, by the hosts' names.
func (a acts) instances(there *elsewhere) (list []reportedPort) {
	f := a.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.sorted() {
		report, connected := there.reportOf(h)
		if report == nil {
			continue
		}
		for _, p := range report.GetPorts() {
			list = append(list, reportedPort{p, h.doc.Name, connected, h.meant(there)})
		}
	}
	return list
}

// moving is a port that goes from host to host.
type moving struct {
	id       string // of the move; "" until a host has told it
	nic      nic
	from, to string // hosts
	meant    string // as that of a reportedPort, of the target
	port     reportedPort
	sw, name string
	group    string
	// device that its guest gets at the target.
	device string
	// uplink: the source reaches the physical network.
	uplink bool
	// macs is how many MACs the port has learned at the source, flows how many of its flows are metered there.
	macs, flows int32
}

// request is what prepares the port at the target.
func (m *moving) request(q *controllerv1.MovePortRequest) *agentv1.ConnectIncomingPortRequest {
	p := m.port
	return &agentv1.ConnectIncomingPortRequest{Vm: m.nic.vm, Adapter: m.nic.adapter, PortId: p.GetPort(),
		Needs: q.GetNeeds(), Force: q.GetForce(), NeedsUplink: m.uplink, Macs: m.macs,
		Flows: m.flows, Host: m.meant,
		Port: &agentv1.PortSpec{Name: m.name, Switch: m.sw, PortGroup: m.group, Mac: p.GetMac(),
			Device: m.device}}
}

// planned is the move that is asked for, if it can be.
func (a acts) planned(ctx context.Context, q *controllerv1.MovePortRequest) (*moving, error) {
	if q.GetPort() == "" || q.GetTo() == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, "say which port moves, and to which host")
	}
	there := a.askHosts(ctx, &controllerv1.GetHostsHereRequest{Reports: true})
	all := a.instances(there)
	p, err := sourceOf(all, q.GetPort(), q.GetHost())
	if err != nil {
		return nil, err
	}
	if err := operates(ctx, p.GetSwitch(), p.GetPortGroup()); err != nil {
		return nil, err
	}
	m := &moving{nic: p.nic(), from: p.host, to: q.GetTo(), port: p, sw: p.GetSwitch(), name: p.GetName(),
		group: p.GetPortGroup(), device: cmp.Or(q.GetDevice(), p.GetDevice())}
	switch {
	case m.nic.vm == "":
		return nil, refusedMove("nobody said whose port %s is, so that no other host knows it: connect it with the "+
			"VM's UUID and the adapter's name (--vm-uuid, --adapter)", m.name)
	case m.from == m.to:
		return nil, refusedMove("port %s is on host %s already", m.name, m.to)
	}
	for _, o := range all {
		if o.host != m.to {
			continue
		}
		if err := m.displaces(ctx, o); err != nil {
			return nil, err
		}
	}
	return m, a.served(m, there, q.GetForce())
}

// displaces refuses a move that would take something from a port of the target: from another guest's, whatever it is
// called, and from one of this adapter in a port group that the caller does not operate.
func (m *moving) displaces(ctx context.Context, o reportedPort) error {
	switch {
	case o.nic() == m.nic && o.runs():
		return refusedMove("port %s of VM %s runs on host %s too: stop one of the two guests first", o.GetName(),
			m.nic.vm, m.to)
	case o.nic() == m.nic:
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
func sourceOf(all []reportedPort, port, host string) (reportedPort, error) {
	var found []reportedPort
	waits := ""
	for _, p := range all {
		if !p.named(port) || host != "" && p.host != host {
			continue
		}
		if !p.runs() {
			waits = p.host
			continue
		}
		found = append(found, p)
	}
	switch {
	case len(found) == 1 && !found[0].connected:
		return reportedPort{}, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("host %s, which had port %s "+
			"last, is not connected to a controller", found[0].host, port))
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		var hosts []string
		for _, p := range found {
			hosts = append(hosts, p.host)
		}
		return reportedPort{}, refusedMove("several hosts have a port %s: say which one moves, by its host (%s)", port,
			strings.Join(hosts, ", "))
	case waits != "":
		return reportedPort{}, refusedMove("no guest runs by port %s on host %s: its port has no device, or waits for "+
			"its guest", port, waits)
	}
	return reportedPort{}, connect.NewError(connect.CodeNotFound, fmt.Sprintf("no host has a port %s: see heddle port "+
		"list --controller", port))
}

// served reports by an error what the target lacks for the port. force passes over what would merely serve the port
// worse.
func (a acts) served(m *moving, there *elsewhere, force bool) error {
	f := a.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	to, from := f.names[m.to], f.names[m.from]
	if to == nil {
		return connect.NewError(connect.CodeNotFound, fmt.Sprintf("the cluster has no host %q: see heddle host list",
			m.to))
	}
	m.meant = to.meant(there)
	now := a.shown(to, there)
	if now.GetStale() || now.GetState() == controllerv1.HostState_HOST_STATE_DISCONNECTED {
		return connect.NewError(connect.CodeUnavailable, fmt.Sprintf("host %s is not connected to a controller", m.to))
	}
	set, err := f.target(to)
	if err != nil {
		return err
	}
	group := m.sw + "/" + m.group
	if _, ok := set.Get(slice.Key{Kind: slice.PortGroup, Name: group}); !ok {
		return refusedMove("host %s does not serve port group %s: give it the switch (heddle apply --controller), or "+
			"choose another host", m.to, group)
	}
	if from != nil {
		m.uplink = isolatedBy(a.shown(from, there), m.sw) == ""
	}
	if force {
		return nil
	}
	if why := isolatedBy(now, m.sw); why != "" && m.uplink {
		return refusedMove("host %s has no usable uplink of switch %s, as host %s has: %s (--force moves "+
			"the port even so)", m.to, m.sw, m.from, why)
	}
	if why := lessProtected(to, m.sw, m.group); why != "" {
		return refusedMove("%s, or use --force", why)
	}
	return nil
}

// lessProtected says why a port of a port group would be less protected on a host; "" for nothing. The caller holds the
// lock.
func lessProtected(h *host, sw, group string) string {
	own := map[slice.Kind]string{slice.PortGroup: sw + "/" + group, slice.Switch: sw}
	for _, l := range h.lacks {
		if of, named := own[l.Key.Kind]; l.Security() && (!named || of == l.Key.Name) {
			return fmt.Sprintf("the agent of host %s does not know %s, so that the port would be less protected "+
				"there: update the host", h.doc.Name, l)
		}
	}
	return ""
}

// isolatedBy is why a switch of a host is cut off from the physical network; "" where it is not.
func isolatedBy(h *controllerv1.Host, sw string) string {
	for _, s := range h.GetSwitches() {
		if s.GetName() == sw {
			return s.GetIsolated()
		}
	}
	return ""
}

// waitingAt is the move of a port whose guest does not run at the target yet.
func (a acts) waitingAt(ctx context.Context, port, host string) (*moving, error) {
	if port == "" {
		return nil, connect.NewError(connect.CodeInvalidArgument, "say which port")
	}
	there := a.askHosts(ctx, &controllerv1.GetHostsHereRequest{Reports: true})
	var found []*moving
	arrived := "" // the host where its guest came a moment ago
	for _, p := range a.instances(there) {
		if p.GetArrived() && p.named(port) && (host == "" || p.host == host) {
			arrived = p.host
		}
		if !p.GetWaits() || host != "" && p.host != host || !p.connected || !p.named(port) {
			continue
		}
		if host == "" { // the one that the guest has left waits, too
			list, err := a.movesOf(ctx, p.host, p.GetName())
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(list, open) {
				continue
			}
		}
		found = append(found, &moving{nic: p.nic(), to: p.host, port: p, sw: p.GetSwitch(), name: p.GetName(),
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
