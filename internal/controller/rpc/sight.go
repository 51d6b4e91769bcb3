package rpc

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/proxy"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
)

// Who has been granted a part of the cluster sees that part: port groups, their ports, the switches of these and the
// hosts that have the switches. Counters of uplinks, templates and hosts' entries are of the whole cluster.

// seenHosts leaves of a list what the caller sees.
func (p people) seenHosts(a *roles.Access, out *controllerv1.ListHostsResponse) {
	if a.SeesAll() {
		return
	}
	out.Hosts = slices.DeleteFunc(out.GetHosts(), func(h *controllerv1.Host) bool {
		h.Switches = slices.DeleteFunc(h.GetSwitches(), func(s *controllerv1.HostSwitch) bool {
			return !a.SeesSwitch(s.GetName())
		})
		h.HostPorts = slices.DeleteFunc(h.GetHostPorts(), func(d *controllerv1.DefinedHostPort) bool {
			return !a.Sees(d.GetSwitch(), d.GetPortGroup())
		})
		if len(h.GetSwitches()) == 0 {
			return true
		}
		// What stands in words may be about others' ports.
		h.Problems, h.Unknown, h.Address = nil, nil, ""
		h.Ports = portsSeen(p.fleet, h.GetName(), a)
		return false
	})
}

// portsSeen is how many ports of a host somebody sees. The caller holds the lock.
func portsSeen(f *fleet, host string, a *roles.Access) (n int32) {
	h := f.names[host]
	if h == nil {
		return 0
	}
	for _, port := range h.report.GetPorts() {
		if a.Sees(port.GetSwitch(), port.GetPortGroup()) {
			n++
		}
	}
	return n
}

// seenPorts leaves of located ports those that the caller sees.
func seenPorts(a *roles.Access, list []*controllerv1.LocatedPort) []*controllerv1.LocatedPort {
	if a.SeesAll() {
		return list
	}
	return slices.DeleteFunc(list, func(l *controllerv1.LocatedPort) bool {
		l.Instances = slices.DeleteFunc(l.GetInstances(), func(i *controllerv1.PortInstance) bool {
			return !a.Sees(i.GetSwitch(), i.GetPortGroup())
		})
		return len(l.GetInstances()) == 0
	})
}

// mayLook holds a call that is passed on to a host against what the caller may see. The answer is to be written to the
// writer that it returns, and done to be called when it ends.
func (l *looks) mayLook(ctx context.Context, w http.ResponseWriter, host string, begin *controllerv1.HostCallBegin) (
	to http.ResponseWriter, done func(error), err error) {
	what := begin.GetProcedure()[strings.LastIndexByte(begin.GetProcedure(), '/')+1:]
	if api.LookOf(begin.GetProcedure()) != api.LooksInto {
		return w, func(error) {}, l.guard.Whole(ctx, roles.View, what, "host="+host)
	}
	if begin.GetProcedure() == agentv1connect.CaptureServiceEndCaptureProcedure {
		done, err = l.mayEnd(ctx, host, what, begin)
		return w, done, err
	}
	parts, err := l.captured(ctx, host, begin)
	if err != nil {
		return nil, nil, err
	}
	recorded, err := l.guard.Look(ctx, what, parts, "host="+host)
	if err == nil {
		if err = proxy.Judge(begin, parts); err != nil {
			recorded(err)
		}
	}
	if err != nil || begin.GetProcedure() != agentv1connect.CaptureServiceCaptureProcedure {
		return w, recorded, err
	}
	c := l.captures.Begin(host, access.NameOf(ctx), parts)
	return c.Watch(w), func(err error) { c.End(); recorded(err) }, nil
}

// mayEnd refuses to end a capture, but to those who began it and to those who may capture what it is about.
func (l *looks) mayEnd(ctx context.Context, host, what string, begin *controllerv1.HostCallBegin) (func(error), error) {
	q := &agentv1.EndCaptureRequest{}
	if err := proxy.Request(begin.GetHeaders()["Content-Type"], begin.GetBody(), q); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	parts, mine := l.captures.Ending(host, q.GetId(), access.NameOf(ctx))
	if mine {
		return l.guard.Record(ctx, what, "host="+host)
	}
	return l.guard.Look(ctx, what, parts, "host="+host)
}

// captured are the port groups whose frames a capture is about; none where it may be about any.
func (l *looks) captured(ctx context.Context, host string, begin *controllerv1.HostCallBegin) ([]roles.Scope, error) {
	if access.GrantedTo(ctx).Has(roles.Capture, roles.Cluster()) ||
		begin.GetProcedure() != agentv1connect.CaptureServiceCaptureProcedure {
		return nil, nil
	}
	q := &agentv1.CaptureRequest{}
	if err := proxy.Request(begin.GetHeaders()["Content-Type"], begin.GetBody(), q); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	sw, names, ok := proxy.CapturedPorts(q)
	if !ok {
		return nil, nil
	}
	if len(names) > abi.MaxPorts {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("a capture of %d ports: a host has "+
			"%d at most", len(names), abi.MaxPorts))
	}
	report, err := reportNow(ctx, l, host)
	if err != nil {
		return nil, err
	}
	return groupsOf(report, sw, names), nil
}

// reportNow is what a host has reported last, to this controller or to another one.
func reportNow(ctx context.Context, l *looks, host string) (fanout.Report, error) {
	there := l.askHosts(ctx, &controllerv1.GetHostsHereRequest{Reports: true, Names: []string{host}})
	l.fleet.mu.Lock()
	defer l.fleet.mu.Unlock()
	h := l.fleet.names[host]
	if h == nil {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("the cluster has no host %q", host))
	}
	report, _ := there.ReportOf(h.known())
	return report, nil
}

// groupsOf are the port groups of reported ports, each once; none where one of the ports is not reported: it may be an
// uplink, or a port that nobody has reported yet.
func groupsOf(report fanout.Report, sw string, names []string) (parts []roles.Scope) {
	if report == nil {
		return nil
	}
	missing, said := map[string]bool{}, map[roles.Scope]bool{}
	for _, name := range names {
		missing[name] = true
	}
	wanted := maps.Clone(missing)
	for _, p := range report.GetPorts() {
		if !wanted[p.GetName()] || sw != "" && p.GetSwitch() != sw {
			continue
		}
		delete(missing, p.GetName())
		if part := (roles.Scope{Switch: p.GetSwitch(), PortGroup: p.GetPortGroup()}); !said[part] {
			said[part] = true
			parts = append(parts, part)
		}
	}
	if len(missing) > 0 {
		return nil
	}
	return parts
}
