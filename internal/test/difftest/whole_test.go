package difftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

const wholeSwitch = `
switches:
- name: s
  tunnel:
    replication: %s
    endpoints: [{address: 192.0.2.1}, {address: 192.0.2.9}, {address: "2001:db8::1"}]
    peers:
    - {name: h2, address: 198.51.100.2, macs: [{vni: 10, mac: "02:00:00:00:00:26"}]}
    - {name: h2, address: 198.51.100.3}
    - {name: h3, address: "2001:db8::3"}
    - {name: h5, address: 192.0.2.5}
    - {name: h6, address: 198.51.100.6}
    - {name: h7, address: 192.0.2.7}
  portGroups:
  - {name: web, overlay: {vni: 10}}
  - {name: guarded, overlay: {vni: 10}, security: {addressGuard: {enabled: true}, routerAdvertisements: reject}}
  - {name: inside, overlay: {vni: 10}, vlan: {access: 7}}
  - name: nested
    overlay: {vni: 10}
    security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 3}}
  - name: hypervisor
    overlay: {vni: 10}
    vlan: {trunk: ["0", "7", "9"]}
    security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 4}}
  - {name: alone, overlay: {vni: 20}}
ports:
- {name: a, switch: s, portGroup: web, device: a, mac: "02:00:00:00:00:01"}
- {name: b, switch: s, portGroup: web, device: b, mac: "02:00:00:00:00:02"}
- name: c
  switch: s
  portGroup: guarded
  device: c
  mac: "02:00:00:00:00:03"
  security: {addressGuard: {addresses: [10.0.0.3, 10.0.0.16/28, "fd00::3", "fd00::10/124"]}}
- {name: d, switch: s, portGroup: inside, device: d, mac: "02:00:00:00:00:04"}
- {name: e, switch: s, portGroup: nested, device: e, mac: "02:00:00:00:00:05"}
- {name: f, switch: s, portGroup: hypervisor, device: f, mac: "02:00:00:00:00:06"}
- {name: g, switch: s, portGroup: alone, device: g, mac: "02:00:00:00:00:07"}
`

// wholes are the host's overlay segments as a whole, in the kernel and in the model: a frame goes through the switch,
// through the tunnel and, where that answers, through the switch again. Nothing is learned or heard but by the two
// themselves.
type wholes struct {
	kernel   *Kernel
	crossing *dataplane.CrossingRecorder
	model    *model.Host
	plans    []*plan.Plan
	now      time.Duration
	seen     map[string]int
}

func newWholes(tb testing.TB, replication spec.Replication) *wholes {
	tb.Helper()
	testkit.Root(tb)
	k, err := NewKernel()
	if err != nil {
		tb.Fatal(err)
	}
	c, err := dataplane.NewSmallCrossingRecorder()
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.ShowTo(k.Recorder); err != nil {
		tb.Fatal(err)
	}
	w := &wholes{kernel: k, crossing: c, now: time.Hour, seen: map[string]int{}}
	// all ports; without the VLAN 7; without the VNI 20; without one port and with no MAC that the file locates
	for _, gone := range []string{"", "df", "dg", "e"} {
		w.plans = append(w.plans, wholePlan(tb, replication, gone))
	}
	return w
}

func (w *wholes) close(tb testing.TB) {
	for _, err := range []error{w.kernel.Close(), w.crossing.Close()} {
		if err != nil {
			tb.Error(err)
		}
	}
}

// wholePlan is the plan without some ports.
func wholePlan(tb testing.TB, replication spec.Replication, gone string) *plan.Plan {
	tb.Helper()
	cfg, err := spec.Parse("whole.yaml", fmt.Appendf(nil, wholeSwitch, replication))
	if err != nil {
		tb.Fatal(err)
	}
	var left []spec.Port
	for _, p := range cfg.Ports {
		if !bytes.Contains([]byte(gone), []byte(p.Name)) {
			left = append(left, p)
		}
	}
	cfg.Ports = left
	if gone == "e" {
		for i := range cfg.Switches[0].Tunnel.Peers {
			cfg.Switches[0].Tunnel.Peers[i].MACs = nil
		}
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		tb.Fatal(err)
	}
	p.Switches[0].Tunnel.Hold = 30 * time.Second
	return p
}

// change makes the host what a plan, the tunnel's fact and reach say.
func (w *wholes) change(p *plan.Plan, tunnel plan.Fact, reach overlay.Reach) error {
	facts := plan.Facts{p.Switches[0].Tunnel.ID: tunnel}
	for _, port := range p.Switches[0].Ports {
		facts[port.ID] = plan.Fact{Up: true, MTU: 1500, SeenMAC: port.InitialMAC}
	}
	all := map[string]overlay.Reach{"s": reach}
	if w.model == nil {
		w.model = model.New(p, facts, w.now)
	}
	w.model.SetReach(all)
	w.model.SetPlan(p, facts, w.now)
	if err := w.kernel.SetPlan(p, facts, w.now); err != nil {
		return err
	}
	return w.crossing.Set(binding.Desired{Plan: p, Facts: facts, Reach: all}, w.now)
}

// frame is one from a port of this host.
func (w *wholes) frame(port *plan.Port, frame []byte) (string, error) {
	want := w.model.Frame(port.ID, frame, w.now)
	got, err := w.kernel.Frame(port.ID, frame, w.now)
	if err != nil {
		return "", err
	}
	w.see("from a port", want.Reason.String())
	w.see("known outside", strconv.FormatBool(want.Outside.IsValid()))
	if d := differ(outcomeIn(&want), got); d != "" {
		return d, nil
	}
	for _, c := range got.Copies {
		if c.To.Name == spec.TunnelName {
			return w.leaves(port, c.Frame, &want)
		}
	}
	if want.Left != nil {
		return "the model has the frame leave by the tunnel", nil
	}
	return "", nil
}

// leaves is the second run of the copy for the tunnel.
func (w *wholes) leaves(port *plan.Port, copied []byte, want *model.Result) (string, error) {
	number := uint32(port.ID.Name[0])
	got, answer, err := w.crossing.LeaveFrom(number, "s", port.VNI, copied, 0, w.now)
	if err != nil {
		return "", fmt.Errorf("leave: %x: %w", copied, err)
	}
	w.see("heard", string(want.Left.Heard.What))
	if want.Left.Heard.Contested != 0 || want.Left.Question.Contested {
		w.see("contested", string(want.Left.Heard.What))
	}
	if want.Left.Question.Announces {
		w.see("announced", "by a question")
	}
	for _, o := range want.Left.Outers {
		w.see("out", o.Reason.String()+" "+o.Known.String())
	}
	if d := differOuters(want.Left.Outers, got); d != "" {
		return d, nil
	}
	if !bytes.Equal(answer, want.Left.Answer) {
		return fmt.Sprintf("answer: want %x\n  got %x", want.Left.Answer, answer), nil
	}
	if answer == nil {
		return "", nil
	}
	w.see("answered", want.Back.Reason.String())
	w.kernel.last = w.now
	back, err := outcome(w.kernel.FrameFrom("s", port.VNI, answer, w.now))
	if err != nil {
		return "", err
	}
	return differ(outcomeIn(want.Back), back), nil
}

// arrive is a frame that comes from an outer address.
func (w *wholes) arrive(from netip.Addr, vni uint32, frame []byte) (string, error) {
	said, want := w.model.Arrive("s", from, vni, frame, w.now)
	got, repeated, err := w.crossing.Arrive("s", from, vni, frame, w.now)
	if err != nil {
		return "", fmt.Errorf("arrive: %w", err)
	}
	w.see("in", said.Reason.String())
	w.see("heard from others", string(said.Heard.What))
	w.see("placed", string(said.Placed.What))
	if got.Reason != said.Reason {
		return fmt.Sprintf("it arrives: want %s, got %s", said.Reason, got.Reason), nil
	}
	if d := differOuters(said.Repeated, repeated); d != "" || got.Reason != 0 {
		return d, nil
	}
	if len(repeated) > 0 {
		w.see("repeated", "")
	}
	w.kernel.last = w.now
	o, err := outcome(w.kernel.FrameFrom("s", vni, frame, w.now))
	if err != nil {
		return "", err
	}
	return differ(outcomeIn(&want), o), nil
}

func (w *wholes) see(what, how string) { w.seen[what+": "+how]++ }

// outcomeIn is what the model says, in the form that the recorder has: the copy for the host's own stack behind a
// tunnel without a tag of no VLAN.
func outcomeIn(r *model.Result) Outcome {
	o := Outcome{Delivered: r.Delivered, Reason: r.Reason, Copies: slices.Clone(r.Copies), Refused: r.Refused}
	for i, c := range o.Copies {
		if f := c.Frame; c.HostStack && tagged(f) && binary.BigEndian.Uint16(f[14:])&0xfff == 0 {
			o.Copies[i].Frame = slices.Concat(f[:12], f[16:])
		}
	}
	return o
}

// tables compares all tables and counters.
func (w *wholes) tables() (string, error) {
	macs, err := w.kernel.MACs(w.now)
	if err != nil {
		return "", err
	}
	counters, err := w.counters()
	if err != nil {
		return "", err
	}
	tables, err := w.crossing.Tables("s")
	if err != nil {
		return "", err
	}
	want, got := w.model.Crossing("s").Tables(), tablesOf(&tables)
	for _, t := range []model.Tables{want, got} { // a share that is over counts no more
		maps.DeleteFunc(t.Shares, func(_ model.Station, s model.Share) bool {
			return w.now-s.Since >= time.Second
		})
	}
	for _, d := range []string{differMACs(w.model.MACs(), macs), differCounters(w.model.Counters(), counters),
		differTables(want, got)} {
		if d != "" {
			return d, nil
		}
	}
	return "", nil
}

// counters are those of the switch program, with what the tunnel's programs count at the tunnel.
func (w *wholes) counters() (map[plan.PortID]model.Counters, error) {
	all, err := w.kernel.Recorder.Counters()
	if err != nil {
		return nil, err
	}
	id := plan.PortID{Switch: "s", Name: spec.TunnelName}
	more, err := w.crossing.Counters("s")
	if err != nil {
		return nil, err
	}
	at := all[id]
	for class := range at.PacketsIn {
		at.PacketsIn[class] += more.PacketsIn[class]
		at.BytesIn[class] += more.BytesIn[class]
	}
	for why, n := range more.Drops {
		at.Drops[why] += n
	}
	for why, n := range more.Refused {
		at.Refused[why] += n
	}
	all[id] = at
	out := map[plan.PortID]model.Counters{}
	for id, c := range all {
		out[id] = counters(c)
	}
	return out, nil
}
