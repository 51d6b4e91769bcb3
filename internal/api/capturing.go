package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	"heddle/internal/plan"
)

const (
	// captureFlush is how long captured frames may wait for more.
	captureFlush = 20 * time.Millisecond
	// captureBatch is how many bytes of frames are sent together.
	captureBatch = 64 << 10
	// captureFarewell is how long sending the rest of a capture may take when the agent ends.
	captureFarewell = time.Second
)

// errCaptureOver refuses late writes to an answer that is complete.
var errCaptureOver = errors.New("the capture has ended")

// Capture sends captured frames, until the capture, the caller or the agent ends.
func (a *adapter) Capture(ctx context.Context, m *agentv1.CaptureRequest,
	out agentv1connect.CaptureServiceCaptureServerStream) error {
	var q Capture
	if err := a.codec.Get(m, &q); err != nil {
		return refusal(NewError(Invalid, err.Error()))
	}
	call := ctx
	ctx, cancel := a.following(ctx)
	defer cancel()
	defer context.AfterFunc(a.ending, func() {
		// a caller that does not read must not delay the end
		_ = deadlines(call, time.Time{}, time.Now().Add(captureFarewell))
	})()
	w := &captureWriter{a: a, send: out.Send}
	err := a.service.Capture(ctx, q, w.emit)
	began := w.close()
	var ended *Error
	if err != nil && (!began || errors.As(err, &ended)) {
		return refusal(err)
	}
	return nil // a caller that has disconnected needs no answer
}

// captureWriter sends events; frames are sent when enough have been collected, and at the latest after captureFlush.
type captureWriter struct {
	a     *adapter
	send  func(*agentv1.CaptureResponse) error
	mu    sync.Mutex
	batch []*agentv1.CapturedFrame
	size  int
	later *time.Timer
	began bool
	err   error
}

func (w *captureWriter) emit(e CaptureEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.began = true
	if e.Frame == nil {
		w.flush()
		w.other(e)
		return w.err
	}
	w.batch = append(w.batch, putFrame(e.Frame))
	w.size += len(e.Frame.Data)
	switch {
	case w.size >= captureBatch:
		w.flush()
	case w.later == nil:
		w.later = time.AfterFunc(captureFlush, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.flush()
		})
	}
	return w.err
}

// flush sends the collected frames; the caller holds the lock.
func (w *captureWriter) flush() {
	if w.later != nil {
		w.later.Stop()
		w.later = nil
	}
	if w.err == nil && len(w.batch) > 0 {
		w.err = w.send(&agentv1.CaptureResponse{Event: &agentv1.CaptureResponse_Frames{
			Frames: &agentv1.CaptureFrames{Frames: w.batch}}})
	}
	w.batch, w.size = nil, 0
}

// other sends an event that is not a frame; the caller holds the lock.
func (w *captureWriter) other(e CaptureEvent) {
	r := &agentv1.CaptureResponse{}
	switch {
	case w.err != nil:
		return
	case e.Started != nil:
		m := &agentv1.CaptureStarted{}
		w.err, r.Event = w.a.codec.Put(e.Started, m), &agentv1.CaptureResponse_Started{Started: m}
	case e.Port != nil:
		m := &agentv1.CapturePort{}
		w.err, r.Event = w.a.codec.Put(e.Port, m), &agentv1.CaptureResponse_Port{Port: m}
	default:
		m := &agentv1.CaptureCounts{}
		w.err, r.Event = w.a.codec.Put(e.Counts, m), &agentv1.CaptureResponse_Counts{Counts: m}
	}
	if w.err == nil {
		w.err = w.send(r)
	}
}

// close sends the rest, and reports whether anything was captured or reported.
func (w *captureWriter) close() (began bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	w.err = errCaptureOver
	return w.began
}

// putFrame encodes a frame without the codec, as there may be a million of them a second.
func putFrame(f *CaptureFrame) *agentv1.CapturedFrame {
	m := &agentv1.CapturedFrame{Time: timestamppb.New(f.Time), Reason: f.Reason, Port: uint32(f.Port),
		Other: uint32(f.Other), Copy: f.Copy, ToHost: f.ToHost,
		FromHost: f.FromHost, Length: f.Length, SegmentSize: f.SegmentSize, Data: append([]byte(nil), f.Data...),
		Remote: textOf(f.Remote), Local: textOf(f.Local), Made: f.Made}
	switch f.Stage {
	case StageAdmit:
		m.Stage = agentv1.CaptureStage_CAPTURE_STAGE_ADMIT
	case StageDeliver:
		m.Stage = agentv1.CaptureStage_CAPTURE_STAGE_DELIVER
	case StageDrop:
		m.Stage = agentv1.CaptureStage_CAPTURE_STAGE_DROP
	}
	switch f.Segment.Kind {
	case plan.SegmentUntagged:
		m.Segment = &agentv1.Segment{Kind: agentv1.SegmentKind_SEGMENT_KIND_UNTAGGED}
	case plan.SegmentQ:
		m.Segment = &agentv1.Segment{Kind: agentv1.SegmentKind_SEGMENT_KIND_DOT1Q, Id: uint32(f.Segment.ID)}
	case plan.SegmentAD:
		m.Segment = &agentv1.Segment{Kind: agentv1.SegmentKind_SEGMENT_KIND_DOT1AD, Id: uint32(f.Segment.ID)}
	}
	if m.Segment != nil {
		m.Segment.Vni = f.Segment.VNI
	}
	return m
}

// textOf is the empty text for no address.
func textOf(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func addressOf(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("the agent sent a frame of the endpoint %q: it is of another version; restart it with "+
			"this program", text)
	}
	return a, nil
}

// getFrame decodes what putFrame has encoded.
func getFrame(m *agentv1.CapturedFrame) (CaptureFrame, error) {
	if m.GetPort() > math.MaxUint16 || m.GetOther() > math.MaxUint16 || m.GetSegment().GetId() > math.MaxUint16 {
		return CaptureFrame{}, fmt.Errorf("the agent sent a frame of port %d, segment %d: it is of another version; "+
			"restart it with this program", m.GetPort(), m.GetSegment().GetId())
	}
	f := CaptureFrame{Time: m.GetTime().AsTime(), Reason: m.GetReason(), Port: uint16(m.GetPort()),
		Other: uint16(m.GetOther()), Copy: m.GetCopy(), ToHost: m.GetToHost(),
		FromHost: m.GetFromHost(), Length: m.GetLength(), SegmentSize: m.GetSegmentSize(), Data: m.GetData(),
		Made: m.GetMade()}
	var errs [2]error
	f.Remote, errs[0] = addressOf(m.GetRemote())
	f.Local, errs[1] = addressOf(m.GetLocal())
	if err := errors.Join(errs[:]...); err != nil {
		return CaptureFrame{}, err
	}
	switch m.GetStage() {
	case agentv1.CaptureStage_CAPTURE_STAGE_ADMIT:
		f.Stage = StageAdmit
	case agentv1.CaptureStage_CAPTURE_STAGE_DELIVER:
		f.Stage = StageDeliver
	case agentv1.CaptureStage_CAPTURE_STAGE_DROP:
		f.Stage = StageDrop
	}
	f.Segment.ID, f.Segment.VNI = uint16(m.GetSegment().GetId()), m.GetSegment().GetVni()
	switch m.GetSegment().GetKind() {
	case agentv1.SegmentKind_SEGMENT_KIND_UNTAGGED:
		f.Segment.Kind = plan.SegmentUntagged
	case agentv1.SegmentKind_SEGMENT_KIND_DOT1Q:
		f.Segment.Kind = plan.SegmentQ
	case agentv1.SegmentKind_SEGMENT_KIND_DOT1AD:
		f.Segment.Kind = plan.SegmentAD
	}
	return f, nil
}

// Capture captures frames and calls emit with every event, until the agent ends the capture, ctx ends, or emit fails. A
// capture that ends properly has counts as its last event, which say why; without them the agent ended before, and the
// error is ErrEnded.
func (c *Client) Capture(ctx context.Context, q Capture, emit func(CaptureEvent) error) error {
	m := &agentv1.CaptureRequest{}
	if err := c.write(q, m); err != nil {
		return err
	}
	s, err := c.capture.Capture(ctx, m)
	if err != nil {
		return c.captureEnd(ctx, err)
	}
	defer s.Close()
	for ended := false; !ended; {
		r, err := s.Receive()
		if err != nil {
			return c.captureEnd(ctx, err)
		}
		if ended, err = c.captured(r, emit); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) captureEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, io.EOF) {
		err = io.EOF
	}
	return c.explain(ctx, err)
}

// captured calls emit with the events of one answer; ended reports whether they are the last.
func (c *Client) captured(r *agentv1.CaptureResponse, emit func(CaptureEvent) error) (ended bool, err error) {
	switch e := r.GetEvent().(type) {
	case *agentv1.CaptureResponse_Frames:
		for _, m := range e.Frames.GetFrames() {
			f, err := getFrame(m)
			if err != nil {
				return false, err
			}
			if err := emit(CaptureEvent{Frame: &f}); err != nil {
				return false, err
			}
		}
		return false, nil
	case *agentv1.CaptureResponse_Started:
		v := &CaptureStarted{}
		if err := c.codec.Get(e.Started, v); err != nil {
			return false, err
		}
		return false, emit(CaptureEvent{Started: v})
	case *agentv1.CaptureResponse_Port:
		v := &CapturePort{}
		if err := c.codec.Get(e.Port, v); err != nil {
			return false, err
		}
		return false, emit(CaptureEvent{Port: v})
	case *agentv1.CaptureResponse_Counts:
		v := &CaptureCounts{}
		if err := c.codec.Get(e.Counts, v); err != nil {
			return false, err
		}
		return v.Ended != "", emit(CaptureEvent{Counts: v})
	}
	return false, errors.New("the agent sent an event that is not known: it is of another version; restart it with " +
		"this program")
}
