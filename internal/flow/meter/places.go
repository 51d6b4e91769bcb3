package meter

import "math/bits"

// places knows which entries are in use and allocates the lowest free one, so that long-lived flows gather at the
// beginning of the file and the rest of it can be freed.
type places struct {
	words []uint64 // a bit for each entry
	full  []uint64 // a bit for each word that has no free entry
	from  int      // no word of full before this one has a zero bit
	size  int
}

func newPlaces(size int) places {
	w := (size + 63) / 64
	return places{words: make([]uint64, w), full: make([]uint64, (w+63)/64), size: size}
}

// take allocates the lowest free entry.
func (p *places) take() (int, bool) {
	for ; p.from < len(p.full); p.from++ {
		if free := ^p.full[p.from]; free != 0 {
			w := p.from*64 + bits.TrailingZeros64(free)
			if w >= len(p.words) {
				break
			}
			i := w*64 + bits.TrailingZeros64(^p.words[w])
			if i >= p.size {
				break
			}
			p.set(i)
			return i, true
		}
	}
	return 0, false
}

// next lists the entries that will be allocated next, as many as fit, and returns how many.
func (p *places) next(to []int32) (n int) {
	for f := p.from; f < len(p.full) && n < len(to); f++ {
		for free := ^p.full[f]; free != 0 && n < len(to); free &= free - 1 {
			w := f*64 + bits.TrailingZeros64(free)
			if w >= len(p.words) {
				return n
			}
			for at := ^p.words[w]; at != 0 && n < len(to); at &= at - 1 {
				i := w*64 + bits.TrailingZeros64(at)
				if i >= p.size {
					return n
				}
				to[n] = int32(i)
				n++
			}
		}
	}
	return n
}

func (p *places) set(i int) {
	w := i / 64
	p.words[w] |= 1 << (i % 64)
	if p.words[w] == ^uint64(0) {
		p.full[w/64] |= 1 << (w % 64)
	}
}

func (p *places) clear(i int) {
	w := i / 64
	p.words[w] &^= 1 << (i % 64)
	p.full[w/64] &^= 1 << (w % 64)
	p.from = min(p.from, w/64)
}
