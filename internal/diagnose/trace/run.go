package trace

import (
	"encoding/hex"
	"errors"
	"fmt"
	"heddle/internal/diagnose"

	"heddle/internal/abi"
	"heddle/internal/model"
)

// Run answers a request. The error is about the request, or is a NotFoundError or KernelError.
func Run(h *Host, q diagnose.Request) (*diagnose.Report, error) {
	t := newTracer(h)
	from, to, notes, err := t.ends(q)
	if err != nil {
		return nil, err
	}
	if err := t.cross(from, to, q.Through); err != nil {
		return nil, err
	}
	r := &diagnose.Report{From: from.id.String(), Agree: true, Notes: notes}
	if to != nil {
		r.To = to.id.String()
	}
	if t.unconnected(r, from) || to != nil && q.Frame == nil && len(q.Frames) == 0 && t.unconnected(r, to) {
		return r, nil
	}
	if q.Frame == nil && len(q.Frames) == 0 {
		if to == nil {
			return nil, errors.New("say what frame (--ip, --arp, --dst-mac, --hex, --pcap), or whom to talk " +
				"to: the second end")
		}
		err = t.talk(r, from, to)
	} else {
		err = t.frames(r, from, to, q)
	}
	if err == nil {
		t.answer(r, from, to)
	}
	return r, err
}

// unconnected answers for an end by which no frame can enter or leave.
func (t *tracer) unconnected(r *diagnose.Report, end *place) bool {
	why := t.connected(end)
	if why == nil {
		return false
	}
	c := t.notConnected(end, why)
	r.Answer = diagnose.Answer{Verdict: diagnose.No, Text: why.Error(), Reason: c.Reason, Fix: fixOf(&c)}
	r.Talk = &diagnose.Talk{Protocols: []diagnose.Protocol{}, Hops: []diagnose.Hop{}, Causes: []diagnose.Cause{c}}
	return true
}

// answer sets the report's answer in one sentence.
func (t *tracer) answer(r *diagnose.Report, from, to *place) {
	end := ""
	if to != nil {
		end = to.id.Name
	}
	switch why := t.Waiting[from.id]; {
	case !why.None():
		r.Answer = diagnose.Answer{Verdict: diagnose.No,
			Text: fmt.Sprintf("frames of %s %s do not reach the switch: %s",
				from.kind(), from.id.Name, why.Text())}
	case r.Talk != nil:
		r.Answer = talkAnswer(r.Talk, from.id.Name, end)
	default:
		r.Answer = framesAnswer(r.Frames, from.id.Name, end)
	}
}

// ends returns where frames enter and their receiver, nil if the request has none. notes say how ends that were named
// by an address were found.
func (t *tracer) ends(q diagnose.Request) (from, to *place, notes []string, err error) {
	if q.Frame != nil && len(q.Frames) > 0 {
		return nil, nil, nil, errors.New("give a frame by its fields or by its bytes, not both")
	}
	if len(q.Frames) > diagnose.MaxFrames {
		return nil, nil, nil, fmt.Errorf("%d frames: at most %d are traced at a time", len(q.Frames),
			diagnose.MaxFrames)
	}
	from, note, err := t.end(q.From)
	if err != nil || q.To == "" {
		return from, nil, noted(nil, note), err
	}
	notes = noted(nil, note)
	if to, note, err = t.end(q.To); err != nil {
		return nil, nil, nil, err
	}
	if to == from {
		return nil, nil, nil, fmt.Errorf("from %s to %s: that is the same %s", q.From, q.To, from.kind())
	}
	return from, to, noted(notes, note), nil
}

func noted(notes []string, note string) []string {
	if note == "" {
		return notes
	}
	return append(notes, note)
}

func (t *tracer) frames(r *diagnose.Report, from, to *place, q diagnose.Request) error {
	list, assumed := q.Frames, []string(nil)
	if q.Frame != nil {
		b, a, err := t.fill(from, to, q.Frame)
		if err != nil {
			return err
		}
		list, assumed = [][]byte{b}, a
	}
	if q.Packet < 0 || q.Packet > len(list) {
		return fmt.Errorf("packet %d: there are %d", q.Packet, len(list))
	}
	if q.Packet > 0 {
		list, r.Sent = list[:q.Packet], q.Packet
	}
	for i, b := range list {
		if len(b) > diagnose.MaxLength {
			return fmt.Errorf("frame %d has %d bytes: the longest that can be traced has %d", i+1, len(b),
				diagnose.MaxLength)
		}
		f, err := t.one(from, to, b)
		if err != nil {
			return fmt.Errorf("frame %d: %w", i+1, err)
		}
		r.Agree = r.Agree && len(f.Differences) == 0
		if q.Packet > 0 && i+1 < q.Packet {
			continue
		}
		f.Number, f.Assumed = i+1, assumed
		if len(list) > 1 && q.Packet == 0 {
			f.Bytes, f.Steps = "", nil
		}
		r.Frames = append(r.Frames, f)
	}
	return nil
}

// one sends one frame.
func (t *tracer) one(from, to *place, b []byte) (diagnose.Frame, error) {
	f := diagnose.Frame{Summary: Describe(b), Length: len(b), Bytes: hex.EncodeToString(b)}
	res, why := t.enter(from, &f, short(b))
	if why != nil {
		f.Causes = []diagnose.Cause{*why}
		return f, nil
	}
	for _, s := range res.Steps {
		f.Steps = append(f.Steps, diagnose.Step{Stage: string(s.Stage), Text: s.Text})
	}
	f.Delivered = res.Delivered
	if !res.Delivered {
		f.Reason = res.Reason.String()
	}
	f.Copies = []diagnose.Copy{}
	for _, c := range res.Copies {
		f.Copies = append(f.Copies, t.copy(c))
	}
	f.Causes = t.causes(from, to, b, &res)
	var err error
	f.Kernel, f.Differences, err = t.askKernel(from, short(b), &res)
	t.leave(from, &f, &res)
	return f, err
}

// short returns the frame with zeros where the dry run has zeros.
func short(b []byte) []byte {
	if len(b) <= KernelBytes {
		return b
	}
	return append(append([]byte{}, b[:KernelBytes]...), make([]byte, len(b)-KernelBytes)...)
}

func (t *tracer) copy(c model.Copy) diagnose.Copy {
	at := t.places[c.To]
	out := diagnose.Copy{To: c.To.Name, Kind: diagnose.ToPort, Device: at.device(), Tag: outerTag(c.Frame),
		Length: len(c.Frame)}
	switch {
	case c.HostStack:
		out.Kind = diagnose.ToHost
	case at.uplink != nil:
		out.Kind, out.Bytes = diagnose.ToUplink, hex.EncodeToString(c.Frame)
	}
	return out
}

// askKernel runs the kernel program on the frame and compares.
func (t *tracer) askKernel(at *place, b []byte, res *model.Result) (diagnose.KernelSays, []string,
	error) {
	switch {
	case t.Kernel == nil:
		return diagnose.KernelNone, nil, nil
	case len(b) < 14:
		return diagnose.KernelTooShort, nil, nil
	}
	var got Outcome
	var err error
	if at.tunnel {
		got, err = t.Kernel.FrameFrom(at.id.Switch, t.through.VNI, b)
	} else {
		got, err = t.Kernel.Frame(at.id, b)
	}
	if err != nil {
		return "", nil, &KernelError{err}
	}
	differ := compare(res, &got)
	if len(differ) > 0 {
		return diagnose.KernelDisagrees, differ, nil
	}
	return diagnose.KernelAgrees, nil, nil
}

// outcomeWords returns a disposition in words.
func outcomeWords(delivered bool, why abi.Reason) string {
	if delivered {
		return "delivered"
	}
	return "dropped (" + why.String() + ")"
}
