package across

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"heddle/internal/diagnose"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Station is what is known of an end.
type Station struct {
	End
	MAC plan.MAC
	// V4 and V6 are addresses of its guest; not valid where they are not known.
	V4, V6 netip.Addr
	VLAN   plan.VLAN
	// Uplinks are those of its switch that are up; Uses those by which its frames leave now.
	Uplinks, Uses []string
}

// Ask asks a host.
type Ask func(ctx context.Context, host string, q diagnose.Request) (*diagnose.Report, error)

// frame is one frame of a conversation.
type frame struct {
	protocol, name string
	back           bool
	fields         func(src, dst Station) *diagnose.Fields
}

// conversation is what two guests have to get through to talk.
func conversation() []frame {
	request := func(s, d Station) *diagnose.Fields {
		return &diagnose.Fields{ARP: &diagnose.Addresses{Src: s.V4, Dst: d.V4}}
	}
	reply := func(s, d Station) *diagnose.Fields {
		return &diagnose.Fields{DstMAC: &d.MAC, ARP: &diagnose.Addresses{Src: s.V4, Dst: d.V4}}
	}
	ipv4 := func(s, d Station) *diagnose.Fields {
		return &diagnose.Fields{DstMAC: &d.MAC, IP: &diagnose.Addresses{Src: s.V4, Dst: d.V4}}
	}
	ipv6 := func(s, d Station) *diagnose.Fields {
		return &diagnose.Fields{DstMAC: &d.MAC, IP: &diagnose.Addresses{Src: s.V6, Dst: d.V6}}
	}
	return []frame{{"ARP", "request", false, request}, {"ARP", "reply", true, reply},
		{"IPv4", "packet", false, ipv4}, {"IPv4", "packet", true, ipv4},
		{"IPv6", "packet", false, ipv6}, {"IPv6", "packet", true, ipv6}}
}

// Talk finds out whether two stations can talk.
func Talk(ctx context.Context, ask Ask, from, to Station) (*Story, error) {
	s := &Story{From: from.End, To: to.End, Agree: true}
	s.assume(&from, 1)
	s.assume(&to, 2)
	for _, f := range conversation() {
		src, dst := from, to
		if f.back {
			src, dst = to, from
		}
		fields := f.fields(src, dst)
		tag(fields, src, dst)
		l, err := walk(ctx, ask, src, dst, diagnose.Request{Frame: fields})
		if err != nil {
			return nil, err
		}
		l.Protocol, l.Frame = f.protocol, f.name
		s.Legs = append(s.Legs, *l)
	}
	s.conclude()
	return s, nil
}

// Frame finds out what becomes of one frame that q says.
func Frame(ctx context.Context, ask Ask, from, to Station, q diagnose.Request) (*Story, error) {
	s := &Story{From: from.End, To: to.End, Agree: true}
	if q.Frame != nil {
		f := *q.Frame
		if f.DstMAC == nil && f.ARP == nil {
			f.DstMAC = &to.MAC
		}
		tag(&f, from, to)
		q.Frame = &f
	}
	l, err := walk(ctx, ask, from, to, q)
	if err != nil {
		return nil, err
	}
	s.Legs = append(s.Legs, *l)
	s.conclude()
	return s, nil
}

// assume gives a station addresses where it has none that are known.
func (s *Story) assume(at *Station, n byte) {
	if !at.V4.IsValid() {
		at.V4 = netip.AddrFrom4([4]byte{192, 0, 2, n})
		s.Notes = append(s.Notes, fmt.Sprintf("no IP address of %s is known: %s stands for it", at.End, at.V4))
	}
	if !at.V6.IsValid() {
		at.V6 = trace.LinkLocal(at.MAC)
	}
}

// tag gives the frame of a trunk's guest the VLAN that the other end is in.
func tag(f *diagnose.Fields, src, dst Station) {
	if f.VLAN == nil && f.Outer == nil && src.VLAN.Mode == plan.VLANTrunk && dst.VLAN.Mode == plan.VLANAccess {
		id := dst.VLAN.ID
		f.VLAN = &id
	}
}

// walk follows one frame from a host to another.
func walk(ctx context.Context, ask Ask, from, to Station, q diagnose.Request) (*Leg, error) {
	l := &Leg{From: from.End, To: to.End, Verdict: diagnose.No, Path: "-"}
	q.From, q.To = from.Port, ""
	sent, err := ask(ctx, from.Host, q)
	if err != nil {
		return nil, err
	}
	if len(sent.Frames) != 1 {
		return nil, fmt.Errorf("host %s answers for %d frames, not for one", from.Host, len(sent.Frames))
	}
	l.Sent = sent
	f := &sent.Frames[0]
	out := leaving(f)
	if len(out) == 0 {
		l.Host, l.Reason, l.Path = from.Host, f.Reason, "dropped on "+from.Host
		if f.Delivered {
			l.Reason, l.Path = "no-uplink", "stays on "+from.Host
		}
		return l, nil
	}
	if len(out[0].Outer) > 0 {
		return l, l.through(ctx, ask, from, to, out[0])
	}
	l.Network = network(out, from, to)
	// What left by an uplink comes by none of the tunnel.
	to.Uplinks = slices.DeleteFunc(slices.Clone(to.Uplinks), func(u string) bool { return u == spec.TunnelName })
	if len(to.Uplinks) == 0 {
		l.Host, l.Reason, l.Path = to.Host, "no-uplink", "no uplink of "+to.Host+" is up"
		return l, nil
	}
	b, err := hex.DecodeString(out[0].Bytes)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("host %s does not say how the frame leaves: its agent is of an older version", from.Host)
	}
	return l, l.receive(ctx, ask, to, b, out[0])
}

// leaving are the copies that leave by an uplink.
func leaving(f *diagnose.Frame) (list []diagnose.Copy) {
	for _, c := range f.Copies {
		if c.Kind == diagnose.ToUplink {
			list = append(list, c)
		}
	}
	return list
}

// receive lets the frame come in at each uplink of the host of the receiver.
func (l *Leg) receive(ctx context.Context, ask Ask, to Station, b []byte, out diagnose.Copy) error {
	single := b[0]&1 == 0
	for _, u := range to.Uplinks {
		r, err := ask(ctx, to.Host, diagnose.Request{From: to.Switch + "/" + u, To: to.Port, Frames: [][]byte{b}})
		if err != nil {
			return err
		}
		counts := !single || len(to.Uses) == 0 || slices.Contains(to.Uses, u)
		l.Received = append(l.Received, Arrival{Uplink: u, Counts: counts, Report: r})
	}
	var refused *Arrival
	for i := range l.Received {
		a := &l.Received[i]
		if !a.Counts {
			continue
		}
		if reaches(a.Report, to.Port) {
			l.Verdict, l.Reason, l.Host = diagnose.Yes, "", ""
			l.Path = fmt.Sprintf("leaves by %s, %s; comes in by %s", out.To, out.Tag, a.Uplink)
			return nil
		}
		if refused == nil {
			refused = a
		}
	}
	l.Host, l.Path = to.Host, fmt.Sprintf("leaves by %s, %s; ends on %s", out.To, out.Tag, to.Host)
	if refused != nil {
		l.Reason = reasonOf(refused.Report)
	}
	return nil
}

// reaches reports whether a port gets a copy.
func reaches(r *diagnose.Report, port string) bool {
	return len(r.Frames) == 1 && slices.ContainsFunc(r.Frames[0].Copies, func(c diagnose.Copy) bool {
		return c.To == port && c.Kind == diagnose.ToPort
	})
}

func reasonOf(r *diagnose.Report) string {
	if r.Answer.Reason != "" || len(r.Frames) != 1 {
		return r.Answer.Reason
	}
	return r.Frames[0].Reason
}

// network says what is taken of the physical network.
func network(out []diagnose.Copy, from, to Station) string {
	by := make([]string, len(out))
	for i, c := range out {
		by[i] = c.To
		if c.Device != "" {
			by[i] += " (" + c.Device + ")"
		}
	}
	return fmt.Sprintf("not known: the frame leaves %s by %s, %s; it is taken to come to %s unchanged", from.Host,
		strings.Join(by, " and "), out[0].Tag, to.Host)
}

// conclude says what the legs come to.
func (s *Story) conclude() {
	for i := range s.Legs {
		l := &s.Legs[i]
		s.Agree = s.Agree && l.Sent.Agree
		for _, a := range l.Received {
			s.Agree = s.Agree && a.Report.Agree
		}
	}
	first := s.firstNo("")
	by, not := "IPv4", s.firstNo("IPv6")
	if not == nil {
		by, not = "IPv6", s.firstNo("IPv4")
	}
	switch {
	case first == nil:
		s.Answer = s.yes("")
	case first.Protocol != "" && s.firstNo(by) == nil: // one family of addresses is enough to talk
		s.Answer = s.yes(" by " + by + ", not by " + not.family() + " (" + not.why().Text + ")")
	default:
		s.Host, s.Answer = first.Host, first.why()
	}
}

// firstNo is the first frame of a family of addresses that does not arrive, "" for any; nil where all do.
func (s *Story) firstNo(family string) *Leg {
	for i := range s.Legs {
		if l := &s.Legs[i]; l.Verdict != diagnose.Yes && (family == "" || family == l.family()) {
			return l
		}
	}
	return nil
}

// family is IPv4 or IPv6; ARP is a part of the former.
func (l *Leg) family() string {
	if l.Protocol == "ARP" {
		return "IPv4"
	}
	return l.Protocol
}

// yes is the answer when frames arrive.
func (s *Story) yes(how string) diagnose.Answer {
	i := slices.IndexFunc(s.Legs, func(l Leg) bool { return l.Verdict == diagnose.Yes })
	l := &s.Legs[i]
	carries := leaving(&l.Sent.Frames[0])[0].Tag + " between the hosts"
	if o := l.Outer; o != nil {
		carries = fmt.Sprintf("VXLAN from %s to %s", o.Source, o.Destination)
	}
	return diagnose.Answer{Verdict: diagnose.Yes, Text: fmt.Sprintf("%s reaches %s%s, if the physical network carries "+
		"%s, which is not known", s.From, s.To, how, carries)}
}

// why is the answer of a leg that does not arrive.
func (l *Leg) why() diagnose.Answer {
	what := strings.TrimSpace(l.Protocol + " " + l.Frame)
	if what == "" {
		what = "frame"
	}
	a := diagnose.Answer{Verdict: diagnose.No, Reason: l.Reason,
		Text: fmt.Sprintf("%s does not reach %s: the %s ends on host %s", l.From, l.To, what, l.Host)}
	r := l.decisive()
	switch {
	case r == nil:
		a.Text += ": " + l.Path
	case r.Answer.Verdict == diagnose.No:
		a.Text, a.Fix = a.Text+": "+r.Answer.Text, r.Answer.Fix
	default:
		a.Text += ", which no uplink of its switch sends out: " + r.Answer.Text
	}
	return a
}

// decisive is the report with the reason why the frame does not arrive; nil where a host has none.
func (l *Leg) decisive() *diagnose.Report {
	if l.Host == l.From.Host {
		return l.Sent
	}
	for i := range l.Received {
		if l.Received[i].Counts {
			return l.Received[i].Report
		}
	}
	return nil
}

// Causes are those of the first frame that does not arrive, on the host where it ends.
func (s *Story) Causes() []diagnose.Cause {
	l := s.firstNo("")
	if l == nil {
		return nil
	}
	if r := l.decisive(); r != nil && len(r.Frames) == 1 {
		return r.Frames[0].Causes
	}
	return nil
}
