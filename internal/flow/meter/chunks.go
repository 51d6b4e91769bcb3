package meter

// chunk is the state of a group of entries whose space in the file is allocated together.
type chunk struct {
	live     int32
	reserved bool
	idle     uint8 // number of calls of freeIdle in which no entry of it was in use
}

// keepIdle is for how many calls of freeIdle, one a second, a chunk keeps its space when no entry in it is in use:
// where flows come and go all the time, allocating it again costs more than keeping it.
const keepIdle = 10

// freeIdle frees the memory of chunks that have not been used for long, a few at a time. What the file system does not
// free stays.
func (t *table) freeIdle() {
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
		*c, left = chunk{reserved: t.file.freeChunk(i) != nil}, left-1
	}
}
