package adopt

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"heddle/internal/host/hostnet"
	"heddle/internal/observe/undone"
	"heddle/internal/spec"
)

// Phase is where a move stands.
type Phase string

// The phases of a move.
const (
	Moving    Phase = "moving"    // steps are being done
	Waiting   Phase = "waiting"   // all done; the gateway has to answer and the operator to confirm
	Confirmed Phase = "confirmed" // it stays until it is released or the machine starts again
	Reverting Phase = "reverting" // steps are being undone
	Released  Phase = "released"  // all undone on demand; the gateway has to answer by the device
)

// Record is one move, as it is written down. Times are CLOCK_BOOTTIME's, which counts for one boot, as all of it does
// (Place).
type Record struct {
	Phase Phase `json:"phase"`
	// Step is how many steps have been begun.
	Step int `json:"step"`
	// Port is the host port that takes the device's place.
	Port spec.Port `json:"port"`
	// Place is the boot and the network namespace that the record counts for.
	Place string `json:"place"`
	// Config is the device's configuration before the move, Settings its kernel parameters, Quieted those of them
	// that Quiet changes.
	Config   *hostnet.Config   `json:"config"`
	Settings []hostnet.Setting `json:"settings"`
	Quieted  []hostnet.Setting `json:"quieted"`
	// Gateways have to answer, all of them where they were Named by the operator, else one of each address family.
	// Answered have.
	Gateways []netip.Addr `json:"gateways"`
	Named    bool         `json:"named,omitzero"`
	Answered []netip.Addr `json:"answered,omitempty"`
	// MovedAt is when the last step was done, or undone on demand.
	MovedAt       time.Duration `json:"movedAt"`
	GatewayWithin time.Duration `json:"gatewayWithin"`
	ConfirmWithin time.Duration `json:"confirmWithin"`
	// Agreed: the operator has confirmed.
	Agreed bool `json:"agreed,omitzero"`
	// Reason is why it is being taken back, or why it could not be released.
	Reason undone.Reason `json:"why,omitzero"`
}

// Verdict is the decision about a move.
type Verdict int

// The verdicts.
const (
	Wait   Verdict = iota // ask the gateways, or the operator, a little longer
	Keep                  // it stays
	Revert                // it is taken back
)

// Missing are the gateways that have yet to answer.
func (r *Record) Missing() (missing []netip.Addr) {
	for _, g := range r.Gateways {
		family := func(a netip.Addr) bool { return a == g || !r.Named && a.Is4() == g.Is4() }
		if !slices.ContainsFunc(r.Answered, family) {
			missing = append(missing, g)
		}
	}
	return missing
}

// Judge decides what happens to a move whose steps are all done, at the instant now, and why it is taken back.
func (r *Record) Judge(now time.Duration) (v Verdict, why undone.Reason) {
	if r.Phase != Waiting {
		return Wait, why
	}
	missing := r.Missing()
	switch {
	case len(missing) > 0 && now >= r.MovedAt+r.GatewayWithin:
		return Revert, undone.Reason{Code: undone.GatewaySilent, Who: texts(missing), Within: r.GatewayWithin}
	case !r.Agreed && now >= r.MovedAt+r.ConfirmWithin:
		return Revert, undone.Reason{Code: undone.NotConfirmed, Within: r.ConfirmWithin}
	case r.Agreed && len(missing) == 0:
		return Keep, why
	}
	return Wait, why
}

// JudgeRelease decides what happens to a move that was undone on demand, at the instant now, and why it is done
// again: Keep means that the device keeps everything.
func (r *Record) JudgeRelease(now time.Duration) (v Verdict, why undone.Reason) {
	missing := r.Missing()
	switch {
	case r.Phase != Released:
		return Wait, why
	case len(missing) == 0:
		return Keep, why
	case now >= r.MovedAt+r.GatewayWithin:
		return Revert, undone.Reason{Code: undone.ReleaseUnanswered, Who: texts(missing), Device: r.Config.Device,
			Within: r.GatewayWithin}
	}
	return Wait, why
}

// Left is how long the operator has to confirm, 0 when that is not waited for.
func (r *Record) Left(now time.Duration) time.Duration {
	if r.Phase != Waiting || r.Agreed {
		return 0
	}
	return max(0, r.MovedAt+r.ConfirmWithin-now)
}

func texts(all []netip.Addr) (list []string) {
	for _, a := range all {
		list = append(list, a.String())
	}
	return list
}

// Describe is what the steps will do, a line each.
func (r *Record) Describe() []string {
	from, to := r.Config.Device, r.Port.Device
	lines := []string{fmt.Sprintf("make interface %s with the MAC %s and the MTU %d", to, r.Port.MAC, r.Port.MTU)}
	for _, o := range r.Config.Addresses {
		lines = append(lines, fmt.Sprintf("move %s from %s to %s", o.Text, from, to))
	}
	lines = append(lines, fmt.Sprintf("connect %s to port group %s of switch %s", to, r.Port.PortGroup, r.Port.Switch))
	for _, list := range [][]hostnet.Object{r.Config.Routes, r.Config.Neighbours, r.Config.Rules} {
		for _, o := range list {
			lines = append(lines, fmt.Sprintf("move %s from %s to %s", o.Text, from, to))
		}
	}
	for _, s := range r.Quieted {
		lines = append(lines, fmt.Sprintf("set %s of %s, which is %s, to %s", s.Name, from, s.Value, quiet(s).Value))
	}
	return append(lines, r.describeAsking(),
		fmt.Sprintf("go back unless \"heddle host-port confirm %s\" is given within %s", r.Port.Name, r.ConfirmWithin))
}

// describeAsking says who is asked whether the network is reached, and which answers keep the move.
func (r *Record) describeAsking() string {
	if len(r.Gateways) == 0 {
		return "ask nobody whether the network is reached: no default gateway goes by " + r.Config.Device
	}
	families := map[bool]bool{}
	for _, g := range r.Gateways {
		families[g.Is4()] = true
	}
	unless := "unless it answers"
	switch {
	case len(r.Gateways) == 1:
	case r.Named || len(r.Gateways) == len(families):
		unless = "unless each of them answers"
	case len(families) == 1:
		unless = "unless one of them answers"
	default:
		unless = "unless one of each address family answers"
	}
	return fmt.Sprintf("ask %s by %s; go back %s within %s", strings.Join(texts(r.Gateways), ", "), r.Port.Device,
		unless, r.GatewayWithin)
}

// QuietedOf are the parameters of a device that Quiet changes: router advertisements and broadcasts reach both the
// device and the interface, and must count once.
func QuietedOf(settings []hostnet.Setting) (some []hostnet.Setting) {
	for _, s := range settings {
		if q := quiet(s); q != s {
			some = append(some, s)
		}
	}
	return some
}

// quiet is a parameter with the value that Quiet sets.
func quiet(s hostnet.Setting) hostnet.Setting {
	switch {
	case s.Family == "ipv6" && s.Name == "accept_ra":
		s.Value = "0"
	case s.Family == "ipv4" && s.Name == "rp_filter":
		s.Value = "1"
	}
	return s
}

// QuietSettings are the parameters that Quiet sets on the device.
func (r *Record) QuietSettings() (all []hostnet.Setting) {
	for _, s := range r.Quieted {
		all = append(all, quiet(s))
	}
	return all
}

// LooseSettings are the interface's parameters during the move: it accepts frames even if the way back leads by the
// other device, and there is no duplicate detection, which would find the device itself.
func LooseSettings() []hostnet.Setting {
	return []hostnet.Setting{{Family: "ipv4", Name: "rp_filter", Value: "2"}, {Family: "ipv6", Name: "accept_dad",
		Value: "0"}, {Family: "ipv6", Name: "accept_ra", Value: "0"}}
}
