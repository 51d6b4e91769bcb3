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
	"heddle/internal/spec/printable"
)

// Phase is how far a move has come.
type Phase string

// The phases of a move.
const (
	Moving    Phase = "moving"    // steps are in progress
	Waiting   Phase = "waiting"   // all steps done; the gateway must answer and the operator confirm
	Confirmed Phase = "confirmed" // stays until it is released or the machine reboots
	Reverting Phase = "reverting" // steps are being undone
	Released  Phase = "released"  // all undone on demand; the gateway must answer through the device
)

// Record is one move as the journal keeps it. Its times are CLOCK_BOOTTIME; the whole record counts for one boot only
// (Place).
type Record struct {
	Phase Phase `json:"phase"`
	// Step is the number of steps that have been begun.
	Step int `json:"step"`
	// Port is the host port that takes the device's place.
	Port spec.Port `json:"port"`
	// Place is the boot and the network namespace for which the record counts.
	Place string `json:"place"`
	// Config is the device's configuration before the move, Settings its kernel parameters, Quieted those parameters
	// that Quiet changes.
	Config   *hostnet.Config   `json:"config"`
	Settings []hostnet.Setting `json:"settings"`
	Quieted  []hostnet.Setting `json:"quieted"`
	// Gateways must answer: all of them if the operator Named them, else one of each address family. Answered are those
	// that have answered.
	Gateways []netip.Addr `json:"gateways"`
	Named    bool         `json:"named,omitzero"`
	Answered []netip.Addr `json:"answered,omitempty"`
	// MovedAt is when the last step was done, or undone on demand (CLOCK_BOOTTIME).
	MovedAt       time.Duration `json:"movedAt"`
	GatewayWithin time.Duration `json:"gatewayWithin"`
	ConfirmWithin time.Duration `json:"confirmWithin"`
	// Agreed: the operator has confirmed the move.
	Agreed bool `json:"agreed,omitzero"`
	// Reason is why the move is being undone, or why it could not be released.
	Reason undone.Reason `json:"why,omitzero"`
}

// Verdict is the decision about a move.
type Verdict int

// The verdicts.
const (
	Wait   Verdict = iota // continue to ask the gateways, or the operator
	Keep                  // the move stays
	Revert                // the move is undone
)

// Missing returns the gateways that have not answered yet.
func (r *Record) Missing() (missing []netip.Addr) {
	for _, g := range r.Gateways {
		family := func(a netip.Addr) bool { return a == g || !r.Named && a.Is4() == g.Is4() }
		if !slices.ContainsFunc(r.Answered, family) {
			missing = append(missing, g)
		}
	}
	return missing
}

// Judge decides what happens to a move whose steps are all done, at the instant now (CLOCK_BOOTTIME), and why it is
// undone.
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

// JudgeRelease decides what happens, at the instant now, to a move that was undone on demand, and why it is done again.
// Keep means that the device keeps its addresses.
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

// Left returns how long the operator has to confirm, 0 if no confirmation is awaited.
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

// Describe returns what the steps will do, one line for each.
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
		fmt.Sprintf("go back unless \"heddle host-port confirm %s\" is given within %s",
			printable.ShellWord(r.Port.Name), r.ConfirmWithin))
}

// describeAsking says who is asked to find out whether the network is reached, and which answers keep the move.
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

// QuietedOf returns the parameters of a device that Quiet changes. Router advertisements and broadcasts reach both the
// device and the interface, and must be processed only once.
func QuietedOf(settings []hostnet.Setting) (some []hostnet.Setting) {
	for _, s := range settings {
		if q := quiet(s); q != s {
			some = append(some, s)
		}
	}
	return some
}

// quiet returns a parameter with the value that Quiet sets.
func quiet(s hostnet.Setting) hostnet.Setting {
	switch {
	case s.Family == "ipv6" && s.Name == "accept_ra":
		s.Value = "0"
	case s.Family == "ipv4" && s.Name == "rp_filter":
		s.Value = "1"
	}
	return s
}

// QuietSettings returns the parameters that Quiet sets on the device.
func (r *Record) QuietSettings() (all []hostnet.Setting) {
	for _, s := range r.Quieted {
		all = append(all, quiet(s))
	}
	return all
}

// LooseSettings returns the interface's parameters during the move: it accepts frames even if the route back leads
// through the other device, and there is no duplicate address detection, which would find the device itself.
func LooseSettings() []hostnet.Setting {
	return []hostnet.Setting{{Family: "ipv4", Name: "rp_filter", Value: "2"}, {Family: "ipv6", Name: "accept_dad",
		Value: "0"}, {Family: "ipv6", Name: "accept_ra", Value: "0"}}
}
