package adoption

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"heddle/internal/agent/adopt"
	"heddle/internal/api"
	"heddle/internal/host/hostnet"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// HostPorts returns the host's own interfaces on its switches.
func (ad *Part) HostPorts(ctx context.Context) (out []api.HostPort, err error) {
	out = []api.HostPort{}
	return out, ad.host.Loop.Do(ctx, func() error {
		for _, sw := range ad.host.Active().Plan.Switches {
			for _, p := range sw.Ports {
				if p.Role == spec.Host {
					out = append(out, ad.viewHostPort(sw, p))
				}
			}
		}
		return nil
	})
}

func (ad *Part) viewHostPort(sw *plan.Switch, p *plan.Port) api.HostPort {
	v := ad.host.View().Port(sw, p, observe.Violation{})
	h := api.HostPort{Switch: v.Switch, Name: v.Name, PortGroup: v.PortGroup, Origin: v.Origin, Device: v.Device,
		MAC: v.MAC, MTU: v.MTU,
		State: v.State, Reason: v.Reason, ReasonCode: v.ReasonCode, Addresses: append([]string{}, v.Addresses...)}
	if r := ad.adopted(p.ID.Name); r != nil {
		now := ad.viewAdoption(r)
		h.Adoption = &now
	}
	return h
}

// viewAdoption describes the state of a record.
func (ad *Part) viewAdoption(r *adopt.Record) api.Adoption {
	v := api.Adoption{Name: r.Port.Name, Device: r.Config.Device, Reason: r.Reason.Text(), ReasonCode: r.Reason.Code,
		Declaration: declaration(r.Port, r.Config.Gateways),
		Warnings:    ad.adoptionWarnings(r)}
	for _, g := range r.Gateways {
		v.Gateways = append(v.Gateways, g.String())
	}
	for _, g := range r.Missing() {
		v.Missing = append(v.Missing, g.String())
	}
	switch {
	case r.Phase == adopt.Moving:
		v.State = api.AdoptionMoving
	case r.Phase == adopt.Reverting:
		v.State = api.AdoptionReverting
	case r.Phase == adopt.Released:
		v.State = api.AdoptionReleasing
	case r.Phase == adopt.Confirmed:
		v.State = api.AdoptionConfirmed
	case len(v.Missing) > 0:
		v.State = api.AdoptionGateway
	default:
		v.State = api.AdoptionConfirm
	}
	if now, err := hostnet.Boottime(); err == nil {
		v.Deadline = adopt.Deadline(r.Left(now))
	}
	return v
}

func (ad *Part) adoptionWarnings(r *adopt.Record) []string {
	warnings := []string{fmt.Sprintf("firewall rules and sockets that name %s do not match %s: add the same for it",
		r.Config.Device, r.Port.Device)}
	if len(r.Gateways) == 0 {
		warnings = append(warnings, fmt.Sprintf("no default gateway goes by %s, so that nobody can be asked whether "+
			"the network is reached: it goes back only when you do not confirm", r.Config.Device))
	}
	return warnings
}

// declaration returns the port as it would be declared in the configuration file, with the first of the default
// gateways that is in one of its subnets: at a boot the agent sets the route with the addresses, and nobody needs to do
// so later.
func declaration(p spec.Port, gateways []netip.Addr) string {
	i := slices.IndexFunc(gateways, func(g netip.Addr) bool {
		return slices.ContainsFunc(p.Addresses, func(a string) bool {
			prefix, err := netip.ParsePrefix(a)
			return err == nil && prefix.Masked().Contains(g)
		})
	})
	if i >= 0 && p.Gateway == "" {
		p.Gateway = gateways[i].String()
	}
	b, err := yaml.Dump(map[string][]spec.Port{"ports": {p}})
	if err != nil {
		return ""
	}
	return string(b)
}

// Adoption returns the state of the adoption of that name, also if it was undone; without a name that of the last one.
func (ad *Part) Adoption(ctx context.Context, q api.HostPortName) (out *api.Adoption, err error) {
	return out, ad.host.Loop.Do(ctx, func() error {
		var found *api.Adoption
		for i := range ad.last {
			if v := &ad.last[i]; q.Name == "" || v.Name == q.Name {
				found = v
			}
		}
		for _, r := range ad.host.Journal().Records {
			if q.Name == "" || r.Port.Name == q.Name {
				v := ad.viewAdoption(r)
				found = &v
			}
		}
		if found == nil {
			return ad.noAdoption(q.Name)
		}
		out = found
		return nil
	})
}

func (ad *Part) noAdoption(name string) error {
	if name == "" {
		return api.NewError(api.NotFound, "no host port has adopted anything: see \"heddle host-port list\"")
	}
	n := known.Names{What: "host port that has adopted anything and is called"}
	for _, r := range ad.host.Journal().Records {
		n.All = append(n.All, r.Port.Name)
	}
	return api.NewError(api.NotFound, n.Missing(name))
}

// Adopt moves the device's addresses and routes to a host port, all or nothing.
func (ad *Part) Adopt(ctx context.Context, q api.Adopt) (out *api.Adoption, err error) {
	return out, ad.host.Loop.Do(ctx, func() error {
		if err := ad.host.Busy(); err != nil {
			return err
		}
		r, warnings, err := ad.adoptable(q)
		if err != nil {
			return err
		}
		if q.DryRun {
			v := ad.viewAdoption(r)
			v.State, v.Steps, v.Warnings, v.Deadline = api.AdoptionPlanned, r.Describe(), append(warnings,
				v.Warnings...), time.Time{}
			out = &v
			return nil
		}
		steps := r.Describe()
		if err := ad.move(r); err != nil {
			return err
		}
		v := ad.viewAdoption(r)
		v.Steps, v.Warnings = steps, append(warnings, v.Warnings...)
		out = &v
		return nil
	})
}

// move does the steps, and undoes them if one fails.
func (ad *Part) move(r *adopt.Record) error {
	ad.host.Journal().Add(r)
	err := adopt.Forward(r, ad.host.Journal().Save, ad.mover())
	if err == nil {
		r.Phase = adopt.Waiting
		if r.MovedAt, err = hostnet.Boottime(); err == nil {
			err = ad.host.Journal().Save()
		}
	}
	if err != nil {
		r.Reason = undone.Reason{Code: undone.Failed, Detail: err.Error()}
		ad.takeBack(r)
		return fmt.Errorf("device %s keeps its addresses: %w", r.Config.Device, err)
	}
	ad.publishAdoption(event.Adopted, r, fmt.Sprintf("host port %s has taken the place of device %s", r.Port.Name,
		r.Config.Device))
	ad.askGateways(r)
	return nil
}

// ConfirmAdoption keeps an adoption, once its gateway has answered.
func (ad *Part) ConfirmAdoption(ctx context.Context, q api.HostPortName) (out *api.Adoption, err error) {
	return out, ad.host.Loop.Do(ctx, func() error {
		r := ad.adopted(q.Name)
		if q.Name == "" {
			r = ad.host.Journal().Open()
		}
		if r == nil || r.Phase == adopt.Reverting || r.Phase == adopt.Released {
			return ad.noAdoption(q.Name)
		}
		if r.Phase == adopt.Waiting && !r.Agreed {
			r.Agreed = true
			if err := ad.host.Journal().Save(); err != nil {
				r.Agreed = false
				return err
			}
		}
		ad.Watch()
		v := ad.viewAdoption(r)
		out = &v
		return nil
	})
}

// parseAdopt reads the parts of the request that do not depend on the host.
func parseAdopt(q api.Adopt) (gateways []netip.Addr, lines []string) {
	for _, s := range q.Gateways {
		g, err := netip.ParseAddr(strings.TrimSpace(s))
		if err != nil || g.Zone() != "" {
			lines = append(lines, fmt.Sprintf("gateway %q is no IP address", s))
			continue
		}
		gateways = append(gateways, g.Unmap())
	}
	for what, d := range map[string]time.Duration{"the gateway's time": q.GatewayWithin,
		"the time to confirm": q.ConfirmWithin} {
		if d < adopt.LeastWait || d > adopt.MostWait {
			lines = append(lines, fmt.Sprintf("%s is %s: use %s to %s", what, d, adopt.LeastWait, adopt.MostWait))
		}
	}
	return gateways, lines
}
