package kerneltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/abi"
)

// expectation is everything one frame is to lead to.
type expectation struct {
	copies  map[string][]byte // by receiver; "host" is the host's stack
	refused map[string]string // reason by receiver; "" is the refusal that has none
	dropped string            // reason; "" = delivered
	flooded bool              // ports get copies of unknown unicast
}

type outcome func(e *expectation, sent string)

// flooded expects that the frame counts as one of unknown unicast that is flooded.
func flooded(e *expectation, _ string) { e.flooded = true }

// to expects copies at the named receivers, in the bytes sent or those given.
func to(names string, frame ...string) outcome {
	return func(e *expectation, sent string) {
		for _, f := range frame {
			sent = f
		}
		for n := range strings.FieldsSeq(names) {
			e.copies[n] = wire(sent)
		}
	}
}

// refused expects copies that are not made, at the named receivers.
func refused(names, reason string) outcome {
	return func(e *expectation, _ string) {
		for n := range strings.FieldsSeq(names) {
			e.refused[n] = reason
		}
	}
}

// noUplink expects the refusal that has no receiver.
func noUplink(e *expectation, _ string) { e.refused[""] = "no-uplink" }

// dropped expects that nobody gets the frame.
func dropped(reason string) outcome {
	return func(e *expectation, _ string) { e.dropped = reason }
}

// send gives a frame to the switch at a port or uplink. What comes of it must be all that is expected and nothing else.
func (r *rig) send(at, frame string, want ...outcome) {
	r.t.Helper()
	e := expectation{copies: map[string][]byte{}, refused: map[string]string{}}
	for _, o := range want {
		o(&e, frame)
	}
	sent := wire(frame)
	got, err := r.rec.Frame(r.id(at), sent, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for _, c := range got.Copies {
		name := c.To.Name
		if c.HostStack {
			name = "host"
		}
		lines = append(lines, fmt.Sprintf("%s gets %x", name, c.Frame))
	}
	for _, x := range got.Refused {
		lines = append(lines, fmt.Sprintf("%s refused: %s", x.To.Name, x.Reason))
	}
	lines = append(lines, disposition(got.Reason.String(), got.Delivered))
	slices.Sort(lines)
	if d := cmp.Diff(e.lines(), lines); d != "" {
		r.t.Errorf("%s sends %s (-want +got):\n%s", at, frame, d)
	}
	r.ledger.record(r, at, sent, &e)
}

func disposition(reason string, delivered bool) string {
	if delivered {
		return "delivered"
	}
	return "dropped: " + reason
}

func (e *expectation) lines() []string {
	lines := []string{disposition(e.dropped, e.dropped == "")}
	for name, f := range e.copies {
		lines = append(lines, fmt.Sprintf("%s gets %x", name, f))
	}
	for name, why := range e.refused {
		lines = append(lines, fmt.Sprintf("%s refused: %s", name, why))
	}
	slices.Sort(lines)
	return lines
}

// learned expects the whole table of learned MACs, each as "VLAN MAC port". It also is what the table must still be
// when the test ends.
func (r *rig) learned(want ...string) {
	r.t.Helper()
	r.ledger.learned(want)
	macs, err := r.rec.MACs()
	if err != nil {
		r.t.Fatal(err)
	}
	var got, expect []string
	for _, m := range macs {
		vlan := fmt.Sprint(m.VLAN)
		if m.AD {
			vlan = "ad" + vlan
		}
		got = append(got, fmt.Sprintf("%s %x %s", vlan, m.MAC[:], m.Port.Name))
	}
	for _, w := range want {
		f := strings.Fields(w)
		expect = append(expect, fmt.Sprintf("%s %x %s", f[0], word(f[1]), f[2]))
	}
	slices.Sort(got)
	slices.Sort(expect)
	if d := cmp.Diff(expect, got); d != "" {
		r.t.Errorf("learned MACs (-want +got):\n%s", d)
	}
}

func reason(name string) abi.Reason {
	r, ok := abi.ParseReason(name)
	if !ok {
		panic(name + " is not a reason")
	}
	return r
}
