package budget

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// Server hands out a budget, in the order in which it is asked.
type Server struct {
	size  int
	mu    sync.Mutex
	free  int
	queue []*request
}

// request is one that waits.
type request struct {
	weight int
	room   chan struct{} // closed once it has its share
}

// NewServer makes a budget of a size, in the unit of weights: one CPU's worth of work.
func NewServer(size int) *Server { return &Server{size: size, free: size} }

// Serve answers everybody who connects, until the listener is closed.
func (s *Server) Serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go s.answer(conn)
	}
}

// answer gives a connection the share that it asks for, and takes it back when the connection ends.
func (s *Server) answer(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return
	}
	weight, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || weight <= 0 {
		return
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends with the connection
		close(gone)
	}()
	r := s.ask(min(weight, s.size))
	select {
	case <-r.room:
		if _, err := io.WriteString(conn, "go\n"); err == nil {
			<-gone
		}
	case <-gone:
	}
	s.release(r)
}

// ask puts a request into the queue.
func (s *Server) ask(weight int) *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &request{weight: weight, room: make(chan struct{})}
	s.queue = append(s.queue, r)
	s.grant()
	return r
}

// release takes a share back, or a request that still waits out of the queue.
func (s *Server) release(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	granted := true
	for i, w := range s.queue {
		if w == r {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			granted = false
			break
		}
	}
	if granted {
		s.free += r.weight
	}
	s.grant()
}

// grant serves the queue from its head: who asks for much is not passed by those who ask for little. The caller holds
// the lock.
func (s *Server) grant() {
	for len(s.queue) > 0 && s.queue[0].weight <= s.free {
		s.free -= s.queue[0].weight
		close(s.queue[0].room)
		s.queue = s.queue[1:]
	}
}
