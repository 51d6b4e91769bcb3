package meter

// outside remembers the flows that did not fit into the table, for the present drain and the one before. Each flow is
// one bit, so that many flows need no more memory than few. Two flows that share a bit count as one: with as many flows
// as a round should bring, that is one in thirty.
type outside struct {
	now, before *bitmap // nil: none
}

// outsideBits is a power of two. A bitmap takes 16 KB.
const outsideBits = 1 << 17

type bitmap [outsideBits / 64]uint64

// begins notes a flow that did not fit, and returns whether it is the first time in this drain and the one before: a
// flow that lasts comes with every drain, but does not begin again.
func (o *outside) begins(hash uint32) bool {
	word, bit := hash%outsideBits/64, uint64(1)<<(hash%64)
	if o.now == nil {
		o.now = &bitmap{}
	}
	seen := o.now[word]&bit != 0 || o.before != nil && o.before[word]&bit != 0
	o.now[word] |= bit
	return !seen
}

// drained is called after each drain.
func (o *outside) drained() { o.now, o.before = nil, o.now }
