package linkproto

import (
	"encoding/binary"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"heddle/internal/fabric"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/uplinks/wire"
)

// pipe is a socket whose frames come to another one; may decides how often.
type pipe struct {
	listen wire.Listen
	mac    plan.MAC
	in     chan *wire.Frame
	done   chan struct{}
	once   sync.Once
	peer   *pipe
	may    func(kind byte, number uint64) int
}

func (p *pipe) Send(frame []byte) error {
	b := frame[14:]
	if frame[12] == 0x81 {
		b = frame[18:]
	}
	f := &wire.Frame{Destination: [6]byte(frame), Source: [6]byte(frame[6:]), EtherType: fabric.EtherType, Payload: b,
		Tagged: true}
	for range p.may(b[5], binary.BigEndian.Uint64(b[16:])) {
		if p.peer.listen.Takes(f) {
			select {
			case p.peer.in <- f:
			case <-p.peer.done:
			}
		}
	}
	return nil
}

func (p *pipe) Receive() (*wire.Frame, error) {
	select {
	case f := <-p.in:
		return f, nil
	case <-p.done:
		return nil, io.EOF
	}
}

func (p *pipe) Hear(wire.Listen) error { return nil }
func (p *pipe) Bound() bool            { return true }
func (p *pipe) Close() error           { p.once.Do(func() { close(p.done) }); return nil }

// loads makes the parts of two hosts in a benchmark with a flow in each direction. may decides how often each frame of
// the first host arrives; all frames of the second one do.
func loads(t *testing.T, run [2]uint32, may func(kind byte, number uint64) int) (parts [2]*Load) {
	t.Helper()
	once := func(byte, uint64) int { return 1 }
	var pipes [2]*pipe
	for i := range pipes {
		pipes[i] = &pipe{mac: plan.MAC{2, 0, 0, 0, 0, byte(i)}, in: make(chan *wire.Frame, 1024),
			done: make(chan struct{}), may: once}
	}
	pipes[0].peer, pipes[1].peer, pipes[0].may = pipes[1], pipes[0], may
	ends := [2]fabric.End{{Host: "a", Switch: "s", Uplink: "u"}, {Host: "b", Switch: "s", Uplink: "u"}}
	flow := func(from int) LoadFlow {
		return LoadFlow{Number: uint32(from + 1), Path: fabric.Path{From: ends[from], To: ends[1-from], VLAN: 10},
			MAC: pipes[1-from].mac, MTU: 1000, Rate: 1_600_000}
	}
	for i := range parts {
		load, err := StartLoad(func(_ uint32, l wire.Listen) (Socket, error) {
			pipes[i].listen = l
			return pipes[i], nil
		}, slog.New(slog.DiscardHandler), LoadPlan{Run: run[i], Lasts: time.Second,
			Uplinks: map[fabric.End]Uplink{ends[i]: {Ifindex: 7, MAC: pipes[i].mac, Up: true}},
			Keys:    []fabric.Secret{{Number: 1, Key: [32]byte{1}}}, Send: []LoadFlow{flow(i)},
			Receive: []LoadFlow{flow(1 - i)}})
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = load
		t.Cleanup(func() { load.End() })
	}
	return parts
}

// runAll has both hosts send, and returns what each counted.
func runAll(t *testing.T, parts [2]*Load) (sent [2]LoadSent, got [2]LoadReceived) {
	t.Helper()
	var both sync.WaitGroup
	for _, l := range parts {
		both.Go(func() {
			if err := l.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	for i, l := range parts {
		s, r := l.End()
		sent[i], got[1-i] = s[0], r[0]
	}
	return sent, got
}

// Each frame is counted once; those that get lost and those that come twice show on the flow that they are of.
func TestS109_ABenchmarkCountsFramesThatAreLostAndThatComeTwice(t *testing.T) {
	lost, twice := uint64(0), uint64(0)
	sent, got := runAll(t, loads(t, [2]uint32{5, 5}, func(kind byte, number uint64) int {
		switch {
		case kind != 3:
			return 1
		case number%3 == 0:
			lost++
			return 0
		case number%5 == 0:
			twice++
			return 2
		}
		return 1
	}))
	if s := sent[0]; s.Frames == 0 || s.Frames > 200 || got[0].Frames != s.Frames-lost || got[0].Duplicates != twice {
		t.Errorf("of %d frames %d were lost and %d came twice; counted: %+v", s.Frames, lost, twice, got[0])
	}
	if s := sent[1]; s.Frames == 0 || s.Frames > 200 || got[1].Frames != s.Frames || got[1].Duplicates != 0 {
		t.Errorf("of %d frames: %+v", s.Frames, got[1])
	}
	for _, s := range sent {
		if s.Answered == 0 || s.Answered > s.Pings || s.Replies != s.Answered || s.P50 <= 0 || s.P99 < s.P50 ||
			s.Lasted != time.Second {
			t.Errorf("%+v", s)
		}
	}
}

// Nothing is sent to an uplink that does not answer, and frames of another benchmark do not count.
func TestS109_ABenchmarkSendsOnlyToWhoAnswers(t *testing.T) {
	testkit.Long(t, "waits for who does not answer; TestS109_ABenchmarkCountsFramesThatAreLostAndThatComeTwice has "+
		"a benchmark")
	loaded := false
	parts := loads(t, [2]uint32{5, 6}, func(kind byte, _ uint64) int {
		loaded = loaded || kind == 3
		return 1
	})
	sent, got := runAll(t, parts)
	for i := range sent {
		if loaded || sent[i].Frames > 0 || sent[i].Answered > 0 || got[i].Frames > 0 {
			t.Errorf("load: %v, %+v, %+v", loaded, sent[i], got[i])
		}
	}
}
