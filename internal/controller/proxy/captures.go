package proxy

import (
	"encoding/binary"
	"net/http"
	"slices"
	"sync"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/platform/access/roles"
)

// mostStart bounds how long the first message of a capture's answer may be, in bytes: it holds a number.
const mostStart = 1 << 10

// Captures are those whose answers are passed on, so that it is known whose frames a capture is about that somebody
// wants to end. The zero value has none.
type Captures struct {
	mu   sync.Mutex
	list []*Capture
}

// Capture is one of them.
type Capture struct {
	host, who string
	parts     []roles.Scope
	of        *Captures
	// id is the host's number for it, 0 until the host has said it.
	id uint64
}

// Begin takes up a capture on a host: who began it, and the port groups whose frames it is about, none for any. End it
// when its answer ends.
func (cs *Captures) Begin(host, who string, parts []roles.Scope) *Capture {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := &Capture{host: host, who: who, parts: parts, of: cs}
	cs.list = append(cs.list, c)
	return c
}

// End forgets the capture.
func (c *Capture) End() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.list = slices.DeleteFunc(c.of.list, func(o *Capture) bool { return o == c })
}

// Ending is what a capture is about that somebody wants to end, by the host's number for it: mine says that they began
// it themselves. Of one that is not known here there are no parts: it may be about any port group.
func (cs *Captures) Ending(host string, id uint64, who string) (parts []roles.Scope, mine bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.list {
		if id != 0 && c.host == host && c.id == id {
			return slices.Clone(c.parts), who != "" && c.who == who
		}
	}
	return nil, false
}

// Watch returns a writer that passes on the capture's answer, and reads its number from the first message.
func (c *Capture) Watch(w http.ResponseWriter) http.ResponseWriter {
	return &watched{ResponseWriter: w, of: c}
}

// watched is a writer of an answer that has not said its number yet, as long as of is not nil.
type watched struct {
	http.ResponseWriter
	of    *Capture
	first []byte
}

// Unwrap is for http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watched) Write(b []byte) (int, error) {
	if w.of != nil {
		w.read(b)
	}
	return w.ResponseWriter.Write(b)
}

// read looks for the number, which is known before the caller of the capture has it.
func (w *watched) read(b []byte) {
	w.first = append(w.first, b[:min(len(b), mostStart-len(w.first))]...)
	if len(w.first) < envelope {
		return
	}
	end := envelope + int64(binary.BigEndian.Uint32(w.first[1:]))
	if end <= mostStart && int64(len(w.first)) < end {
		return // the rest is to come
	}
	var m agentv1.CaptureResponse
	if end <= mostStart && answer(w.Header().Get("Content-Type"), w.first[:end], &m) == nil {
		w.of.of.mu.Lock()
		w.of.id = m.GetStarted().GetId()
		w.of.of.mu.Unlock()
	}
	w.of, w.first = nil, nil
}
