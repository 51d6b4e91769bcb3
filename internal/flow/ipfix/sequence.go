package ipfix

import "slices"

// Sequence computes from the sequence numbers of a domain's messages how many data records were lost on the way (RFC
// 7011 §3.1, §10.3.2). The zero value has seen no message.
type Sequence struct {
	// Lost is the number of records that were sent but have not come so far.
	Lost uint64
	// Restarts is how often the exporter started anew.
	Restarts uint64

	known bool
	next  uint32 // of the message expected next
	// gaps are the latest gaps, which late messages may still fill.
	gaps []gap
	// After a step back that fills no gap: the number that would follow it. Either a message came twice, or the
	// exporter started anew; the next message shows which.
	stepped bool
	after   uint32
}

// gap is a run of sequence numbers, modulo 2³².
type gap struct{ from, to uint32 }

const (
	rememberedGaps = 8
	// largestGap is the longest step that counts as a loss and not as a restart of the exporter.
	largestGap = 1 << 24
)

// Message takes a message's sequence number and its number of data records, and returns how many more records are lost:
// a negative number if the message had been counted as lost. complete is false if the records cannot be counted (a set
// without template): then the next message's number is accepted as it is.
func (s *Sequence) Message(sequence uint32, records int, complete bool) int64 {
	end := sequence + uint32(records)
	step := sequence - s.next
	switch {
	case !s.known:
		s.gaps = nil
	case step <= largestGap:
		return s.advance(step, sequence, end, complete)
	case s.fill(sequence, end):
		s.Lost -= uint64(records)
		return -int64(records)
	case s.stepped && sequence-s.after <= largestGap:
		step = sequence - s.after
		s.Restarts++
		s.gaps = nil
		return s.advance(step, sequence, end, complete)
	default:
		s.stepped, s.after = true, end
		return 0
	}
	s.known, s.next, s.stepped = complete, end, false
	return 0
}

// advance records the message as the newest, step records after the one before it.
func (s *Sequence) advance(step, sequence, end uint32, complete bool) int64 {
	if step > 0 {
		s.Lost += uint64(step)
		if len(s.gaps) == rememberedGaps {
			s.gaps = slices.Delete(s.gaps, 0, 1)
		}
		s.gaps = append(s.gaps, gap{sequence - step, sequence})
	}
	s.known, s.next, s.stepped = complete, end, false
	return int64(step)
}

// fill removes the numbers from a gap that contains all of them.
func (s *Sequence) fill(from, to uint32) bool {
	for i, g := range s.gaps {
		if from == to || from-g.from > to-g.from || to-g.from > g.to-g.from {
			continue
		}
		s.gaps = slices.Delete(s.gaps, i, i+1)
		for _, rest := range []gap{{g.from, from}, {to, g.to}} {
			if rest.from != rest.to && len(s.gaps) < rememberedGaps {
				s.gaps = append(s.gaps, rest)
			}
		}
		return true
	}
	return false
}
