package kerneltest

import (
	"strings"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/abi"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// ledger is the books of a test: what every counter of every port and uplink must be, worked out from what the test
// expects of each frame. They are compared whole at the end of every test (S80, S94).
type ledger struct {
	books map[string]*observe.Counters
	table []string
}

func (l *ledger) of(name string) *observe.Counters {
	if l.books == nil {
		l.books = map[string]*observe.Counters{}
	}
	c := l.books[name]
	if c == nil {
		c = &observe.Counters{Drops: map[abi.Reason]uint64{}, Refused: map[abi.Reason]uint64{}}
		l.books[name] = c
	}
	return c
}

func (l *ledger) record(r *rig, at string, sent []byte, e *expectation) {
	in, class := l.of(at), abi.ClassUnicast
	switch {
	case [6]byte(sent) == [6]byte(word("all")):
		class = abi.ClassBroadcast
	case sent[0]&1 == 1:
		class = abi.ClassMulticast
	}
	in.PacketsIn[class]++
	in.BytesIn[class] += uint64(len(sent))
	if e.flooded {
		in.UnknownFlooded++
	}
	if e.dropped == "" {
		in.Delivered++
	} else {
		in.Drops[reason(e.dropped)]++
	}
	for name, f := range e.copies {
		if name == "host" {
			in.PacketsToHost++
			continue
		}
		out := l.of(name)
		out.PacketsOut[class]++
		out.BytesOut[class] += uint64(len(f))
		switch {
		case r.plan.Uplink(r.id(at)) != nil:
			out.BytesInFromPnic += uint64(len(f))
		case r.plan.Uplink(r.id(name)) != nil:
			in.BytesOutToPnic += uint64(len(f))
		}
	}
	for name, why := range e.refused {
		if name != "" {
			l.of(name).Refused[reason(why)]++
		}
	}
}

// learned notes which port holds how many MACs.
func (l *ledger) learned(table []string) {
	l.table = table
	for _, c := range l.books {
		c.MACsHeld = 0
	}
	for _, line := range table {
		l.of(line[strings.LastIndexByte(line, ' ')+1:]).MACsHeld++
	}
}

func (l *ledger) compare(r *rig) {
	if r.t.Failed() {
		return // what follows from the failure would hide it
	}
	r.learned(l.table...)
	got, err := r.rec.Counters()
	if err != nil {
		r.t.Error(err)
		return
	}
	want := map[plan.PortID]observe.Counters{}
	for id := range got {
		want[id] = *l.of(id.Name)
	}
	if d := cmp.Diff(want, got); d != "" {
		r.t.Errorf("counters (-want +got):\n%s", d)
	}
}
