package access

import (
	"net/http"
	"time"
)

// patient is where an answer goes; a reader that is too slow is left.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	// until is the deadline in force; zero for none.
	until time.Time
}

// Patient is where an answer goes of which each part is to be taken within a time: the stream of a reader that takes
// longer is reset. A stream on which nothing waits to be sent has no deadline: HTTP/2 resets a stream whose deadline
// passes, whether it is being written to or not.
func Patient(w http.ResponseWriter, within time.Duration) http.ResponseWriter {
	return &patient{ResponseWriter: w, control: http.NewResponseController(w), within: within}
}

func (p *patient) Write(b []byte) (int, error) {
	p.begin()
	return p.ResponseWriter.Write(b)
}

// begin sets the deadline. It is set anew once a tenth of the time is over, and not with each small piece.
func (p *patient) begin() {
	if now := time.Now(); p.until.Sub(now) < p.within-p.within/10 {
		p.until = now.Add(p.within)
		_ = p.control.SetWriteDeadline(p.until) // fails where a connection has no deadlines; those of the network have
	}
}

// FlushError sends what was written, and waits until it is on its way.
func (p *patient) FlushError() error {
	p.begin()
	err := p.control.Flush()
	p.until = time.Time{}
	_ = p.control.SetWriteDeadline(p.until)
	return err
}

// Flush is FlushError; what failed is found by the next write.
func (p *patient) Flush() { _ = p.FlushError() }

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
