package meter

// chunk is what is known of some entries that get their room together.
type chunk struct {
	live     int32
	reserved bool
	idle     uint8 // number of calls of giveBack in which it was not needed
}

// keepIdle is for how many calls of giveBack, one a second, a chunk keeps its room when no entry in it is in use: where
// flows come and go all the time, to get it anew costs more than to keep it.
const keepIdle = 10

// giveBack returns the memory of chunks that have not been used for long, a few at a time. What the file system does
// not take back stays.
func (t *table) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, left := 0, 16; i < len(t.chunks) && left > 0; i++ {
		c := &t.chunks[i]
		if c.live > 0 || !c.reserved {
			c.idle = 0
			continue
		}
		if c.idle++; c.idle <= keepIdle {
			continue
		}
		*c, left = chunk{reserved: t.file.giveBack(i) != nil}, left-1
	}
}
