package difftest

import (
	"bytes"
	"testing"
	"time"

	"heddle/internal/model"
	"heddle/internal/plan"
)

// TestS94_AccountsBalance checks, of the model alone, that every frame and every copy is accounted for: at each port,
// frames in are those delivered and those dropped; overall, copies out are those that outcomes listed.
func TestS94_AccountsBalance(t *testing.T) {
	for seed := range uint64(40) {
		c := Generate(seed, StepsPerCase)
		p, f, err := c.State.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		h := model.New(p, f, 0)
		now, copies := time.Duration(0), uint64(0)
		for _, s := range c.Steps {
			now += s.After
			switch {
			case s.FromHost:
				for _, x := range h.FromHost(s.At, s.Frame, now).Copies {
					if x.To != s.At { // what leaves is the device's to count
						copies++
					}
				}
			case s.Frame != nil: // changes are left out: ports that go take their counters along
				r := h.Frame(s.At, s.Frame, now)
				oneDisposition(t, r)
				copies += uint64(len(r.Copies))
			}
		}
		balance(t, h.Counters(), copies)
	}
}

func oneDisposition(t *testing.T, r model.Result) {
	t.Helper()
	if r.Delivered != (len(r.Copies) > 0) || (r.Delivered && r.Reason != 0) {
		t.Fatalf("delivered %v, reason %v, %d copies", r.Delivered, r.Reason, len(r.Copies))
	}
}

func balance(t *testing.T, all map[plan.PortID]model.Counters, copies uint64) {
	t.Helper()
	for id, c := range all {
		in := c.PacketsInUnicast + c.PacketsInMulticast + c.PacketsInBroadcast
		if fates := c.Delivered + c.PacketsInDropped + c.PacketsInException; in != fates {
			t.Errorf("%s: %d frames in, %d fates", id, in, fates)
		}
		var drops uint64
		for _, n := range c.DropsIn {
			drops += n
		}
		if drops != c.PacketsInDropped+c.PacketsInException {
			t.Errorf("%s: %d drops by reason, %d dropped and excepted", id, drops, c.PacketsInDropped+
				c.PacketsInException)
		}
		copies -= c.PacketsOutUnicast + c.PacketsOutMulticast + c.PacketsOutBroadcast + c.PacketsToHost
	}
	if copies != 0 {
		t.Errorf("copies handed over and copies counted differ by %d", int64(copies))
	}
}

// FuzzFrame gives any bytes to every port of a random host: nothing breaks out of its segment, every frame has one
// fate, and the bytes given in stay as they are.
func FuzzFrame(f *testing.F) {
	for seed := range uint64(8) {
		for _, s := range Generate(seed, 12).Steps {
			f.Add(seed, []byte(s.Frame))
		}
	}
	f.Fuzz(func(t *testing.T, seed uint64, frame []byte) {
		c := Generate(seed%64, 1)
		p, facts, err := c.State.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		h, guard, before := model.New(p, facts, 0), NewIsolation(p, facts), bytes.Clone(frame)
		for _, m := range c.State.Members {
			if !guard.connected(m.ID) {
				continue
			}
			r := h.Frame(m.ID, frame, 0)
			oneDisposition(t, r)
			o := Outcome{Delivered: r.Delivered, Reason: r.Reason, Copies: r.Copies, Refused: r.Refused}
			if what := guard.Check(m.ID, frame, o); what != "" {
				t.Fatal(what)
			}
			if !bytes.Equal(frame, before) {
				t.Fatal("the frame was changed")
			}
		}
	})
}
