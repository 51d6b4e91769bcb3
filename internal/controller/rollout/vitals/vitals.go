package vitals

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/rollout"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/rpcerrors"
)

// Bounds of reading what hosts have counted.
const (
	// vitalsTime bounds it for all hosts, vitalsOne for one of them.
	vitalsTime = 10 * time.Second
	vitalsOne  = 3 * time.Second
	// vitalsAtOnce is how many hosts are asked at a time.
	vitalsAtOnce = 64
)

// Reader reads what hosts have counted.
type Reader struct {
	Log    *slog.Logger
	Roster *peers.Roster
	// Here are those of some hosts that are connected to this controller, with the states of their ports and uplinks as
	// they said last.
	Here func(names []string) []*controllerv1.HostVitals
	// Agent makes one call at a host's agent.
	Agent func(ctx context.Context, host string, do func(context.Context, *connect.Client) error) error
}

// Of reads those of hosts, wherever they are connected, for these switches.
func (v Reader) Of(ctx context.Context, names, switches []string) map[string]rollout.Vitals {
	all := map[string]rollout.Vitals{}
	var mu sync.Mutex
	take := func(list []*controllerv1.HostVitals) {
		mu.Lock()
		defer mu.Unlock()
		for _, h := range list {
			all[h.GetName()] = vitalsOf(h, switches)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { take(v.Read(ctx, names)) })
	both.Go(func() {
		answers := peers.AskOthers(ctx, v.Roster, vitalsTime+peers.AskTime, func(ctx context.Context, k *peers.Link) (
			*controllerv1.ReadVitalsHereResponse, error) {
			return k.ReadVitalsHere(ctx, &controllerv1.ReadVitalsHereRequest{Names: names})
		})
		for _, a := range answers {
			if a.Err != nil {
				v.Log.Debug("another controller does not say what its hosts have counted", "controller", peers.NameOf(
					a.Of),
					"err", a.Err)
			}
			take(a.Got.GetHosts())
		}
	})
	both.Wait()
	return all
}

// vitalsOf are those of a host, for these switches.
func vitalsOf(h *controllerv1.HostVitals, switches []string) rollout.Vitals {
	of := rollout.Rollout{Switches: switches}
	sum := rollout.Vitals{Known: h.GetSilent() == "", Silent: h.GetSilent(),
		Mute: h.GetMute(), Start: string(h.GetStart()),
		Drops: map[string]uint64{}}
	for _, s := range h.GetSwitches() {
		if !of.Touches([]string{s.GetName()}) {
			continue
		}
		sum.LinksUp += int(s.GetLinksUp())
		sum.Shut += int(s.GetPortsShut())
		sum.Ports += int(s.GetPorts())
		sum.Sent += s.GetSent()
		sum.Handed += s.GetHanded()
		for reason, n := range s.GetDrops() {
			sum.Drops[reason] += n
		}
		sum.At = max(sum.At, time.Duration(s.GetReadAt()).Seconds())
	}
	return sum
}

// Read reads those of the hosts that are connected here, many at the same time.
func (v Reader) Read(ctx context.Context, names []string) (list []*controllerv1.HostVitals) {
	ctx, cancel := context.WithTimeout(ctx, vitalsTime)
	defer cancel()
	next := make(chan *controllerv1.HostVitals)
	var all sync.WaitGroup
	list = v.Here(names)
	for range min(vitalsAtOnce, len(list)) {
		all.Go(func() {
			for h := range next {
				v.ask(ctx, h)
			}
		})
	}
	for _, h := range list {
		next <- h
	}
	close(next)
	all.Wait()
	return list
}

// OfSwitch are those of a switch.
func OfSwitch(h *controllerv1.HostVitals, name string) *controllerv1.SwitchVitals {
	for _, s := range h.GetSwitches() {
		if s.GetName() == name {
			return s
		}
	}
	s := &controllerv1.SwitchVitals{Name: name}
	h.Switches = append(h.Switches, s)
	return s
}

// ask asks one host what it has counted.
func (v Reader) ask(ctx context.Context, h *controllerv1.HostVitals) {
	if ctx.Err() != nil { // nobody waits for it any more
		h.Silent = "it was not asked in time"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, vitalsOne)
	defer cancel()
	var got *agentv1.ListVitalsResponse
	err := v.Agent(ctx, h.GetName(), func(ctx context.Context, c *connect.Client) (err error) {
		got, err = agentv1connect.NewStatsServiceClient(c).ListVitals(ctx, &agentv1.ListVitalsRequest{})
		return err
	})
	if code, text := rpcerrors.CodeAndText(err); code != 0 {
		h.Silent = text
		if code == connect.CodeUnimplemented || code == connect.CodePermissionDenied {
			h.Mute = true
			h.Silent = "its agent is of an earlier version, and does not say what it has counted"
		}
		return
	}
	for _, one := range got.GetVitals() {
		s := OfSwitch(h, one.GetSwitch())
		s.Sent, s.Handed, s.Ports, s.ReadAt = one.GetSent(), one.GetHanded(), one.GetPorts(), one.GetReadAt()
		s.Drops = map[string]uint64{}
		for _, d := range one.GetDrops() {
			s.Drops[d.GetReason()] += d.GetValue()
		}
	}
}
