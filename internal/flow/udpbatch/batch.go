package udpbatch

// The most datagrams and bytes that a Batch should have when it is sent: two calls of full messages, far less than a
// socket's buffer.
const (
	MaxDatagrams = 128
	MaxBytes     = 96 << 10
)

// Limits for runs that the kernel divides.
const (
	maxSegments = 64             // UDP_MAX_SEGMENTS of the kernels before 6.9
	maxRunBytes = 65535 - 20 - 8 // what fits into an IPv4 packet
)

// Batch is datagrams in the order in which they are sent. Its zero value is empty. It is for one goroutine.
type Batch struct {
	bytes []byte
	ends  []int // of each datagram, in bytes
	runs  []int // how many datagrams left after each datagram in the same piece; 0 = it was the last or alone
}

// Add appends a copy of a datagram of 1–65507 bytes.
func (b *Batch) Add(datagram []byte) {
	b.bytes = append(b.bytes, datagram...)
	b.ends = append(b.ends, len(b.bytes))
	b.runs = append(b.runs, 0)
}

// Len is the number of datagrams.
func (b *Batch) Len() int { return len(b.ends) }

// Full reports whether another datagram of n bytes would be too much for the batch. An empty one is never full.
func (b *Batch) Full(n int) bool {
	return len(b.ends) > 0 && (len(b.ends) >= MaxDatagrams || len(b.bytes)+n > MaxBytes)
}

// Reset empties the batch but keeps its memory.
func (b *Batch) Reset() { b.bytes, b.ends, b.runs = b.bytes[:0], b.ends[:0], b.runs[:0] }

// Datagram is the i-th one; valid until Reset.
func (b *Batch) Datagram(i int) []byte { return b.bytes[b.start(i):b.ends[i]:b.ends[i]] }

// Behind is how many datagrams left after the i-th in the same piece. They have its length, and on a path that does not
// divide them they share its fate. It is known once the batch was sent.
func (b *Batch) Behind(i int) int { return b.runs[i] }

func (b *Batch) start(i int) int {
	if i == 0 {
		return 0
	}
	return b.ends[i-1]
}

// run is how many datagrams from the i-th on can go in one piece, because they have the same length.
func (b *Batch) run(i int) int {
	length := b.ends[i] - b.start(i)
	most := min(maxSegments, maxRunBytes/length, b.Len()-i)
	n := 1
	for n < most && b.ends[i+n]-b.ends[i+n-1] == length {
		n++
	}
	return n
}

// sent notes that n datagrams from the i-th on left in one piece.
func (b *Batch) sent(i, n int) {
	for k := range n {
		b.runs[i+k] = n - 1 - k
	}
}
