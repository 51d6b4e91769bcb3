package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "heddle/api/heddle/agent/v1" // the contract whose calls are passed on to hosts
)

// Bounds of the bodies of requests, in bytes.
const (
	// smallBody is how long a request may be, but those of which the rule says that they may be large.
	smallBody = 64 << 10
	// largeBody is how long those may be, partBody how long of who has a part of the cluster, and applies what they
	// see.
	largeBody = 40 << 20
	partBody  = 4 << 20
	// largeSum is how much memory all large bodies together may take: as much again is there for who manages the
	// cluster. partSum is that of those who have a part of it.
	largeSum = 48 << 20
	partSum  = 8 << 20
)

// memory is what the large bodies of some callers may take together; who comes first has it first.
type memory struct{ *semaphore.Weighted }

func newMemory(sum int64) memory { return memory{semaphore.NewWeighted(sum)} }

// take waits until there is room for so many bytes, for a time at most.
func (m memory) take(ctx context.Context, bytes int64, within time.Duration) (leave func(),
	err *connect.Error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if m.Acquire(ctx, bytes) != nil {
		return nil, full("the controller reads as many large requests as it can at a time")
	}
	return func() { m.Release(bytes) }, nil
}

// answer answers a request of a caller. Its body comes first, and only then does it take the place of one that is
// answered: who sends slowly keeps nobody else from being answered.
func (g *Guard) answer(w http.ResponseWriter, r *http.Request, c Caller, next http.Handler) {
	r, leave, err := g.received(w, r, c)
	if err != nil {
		g.write(w, r, err)
		return
	}
	defer leave()
	room := g.answering
	switch {
	case c.Token == nil:
		room = g.rooms.open
	case follows(r.URL.Path):
		room = g.following
	}
	done, err := room.take(c)
	if err != nil {
		g.write(w, r, err)
		return
	}
	defer done()
	next.ServeHTTP(Patient(w, writeTime), r)
}

// received is the request once its body has come, or the first of it where it is large. The caller calls leave when the
// request has been answered.
func (g *Guard) received(w http.ResponseWriter, r *http.Request, c Caller) (q *http.Request, leave func(),
	err *connect.Error) {
	room, within := g.receiving, g.ReadTime
	switch rule := g.Rules.Of(r.URL.Path); {
	case c.Token == nil && rule.Empty:
		q = r.WithContext(r.Context())
		q.Body = nothing(r.Header.Get("Content-Type"))
		return q, func() {}, nil
	case c.Token == nil:
		room, within = g.opening, min(openTime, within)
	}
	control := http.NewResponseController(w)
	// Errors of the two say that the connection has no deadlines, which those of the network have.
	_ = control.SetReadDeadline(time.Now().Add(within))
	arrived, err := room.take(c)
	if err != nil {
		return r, nil, err
	}
	first, failed := io.ReadAll(io.LimitReader(r.Body, smallBody+1))
	arrived()
	if failed != nil {
		return r, nil, connect.NewError(connect.CodeDeadlineExceeded, "the request did not come as a whole within "+
			within.String())
	}
	q = r.WithContext(r.Context())
	if len(first) <= smallBody {
		_ = control.SetReadDeadline(time.Time{})
		q.Body = io.NopCloser(bytes.NewReader(first))
		return q, func() {}, nil
	}
	rest := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), r.Body), r.Body}
	rule := g.Rules.Of(r.URL.Path)
	if _, refused := c.may(rule); !rule.Large || refused != nil {
		q.Body = http.MaxBytesReader(w, rest, smallBody)
		return q, func() {}, nil
	}
	most, leave, err := g.large(r, c, rule)
	if err != nil {
		return r, nil, err
	}
	_ = control.SetReadDeadline(time.Now().Add(within))
	body, failed := read(http.MaxBytesReader(w, rest, most))
	_ = control.SetReadDeadline(time.Time{})
	if failed != nil {
		leave()
		return r, nil, connect.NewError(connect.CodeResourceExhausted, fmt.Sprintf("the request did not come as a "+
			"whole within %s, or is longer than %d bytes", within, most))
	}
	q.Body = io.NopCloser(body)
	return q, leave, nil
}

// large takes what a large body needs, which has so many bytes at most.
func (g *Guard) large(r *http.Request, c Caller, rule Rule) (most int64, leave func(), err *connect.Error) {
	done, err := g.larges.take(c)
	if err != nil {
		return 0, nil, err
	}
	of, most := g.memory, int64(largeBody)
	rule.Judged = false
	if _, part := c.may(rule); part != nil {
		of, most = g.partMemory, partBody
	} else if c.manages() {
		of = g.adminMemory
	}
	size := r.ContentLength
	if size < 0 || size > most {
		size = most
	}
	free, err := of.take(r.Context(), size, g.ReadTime)
	if err != nil {
		done()
		return 0, nil, err
	}
	return most, func() { free(); done() }, nil
}

// pieces is a large body that has come. What was read of it takes no memory any more.
type pieces struct{ list [][]byte }

// read reads a body. A buffer that grows would take three times its size.
func read(body io.Reader) (*pieces, error) {
	const size = 256 << 10
	p := &pieces{}
	for {
		piece := make([]byte, size)
		n, err := io.ReadFull(body, piece)
		p.list = append(p.list, piece[:n])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return p, nil
		case err != nil:
			return nil, err
		}
	}
}

func (p *pieces) Read(b []byte) (n int, err error) {
	for len(p.list) > 0 && n < len(b) {
		k := copy(b[n:], p.list[0])
		n += k
		if p.list[0] = p.list[0][k:]; len(p.list[0]) == 0 {
			p.list[0], p.list = nil, p.list[1:]
		}
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Within is a request's body that has to come within a time.
func Within(w http.ResponseWriter, body io.ReadCloser, d time.Duration) io.ReadCloser {
	control := http.NewResponseController(w)
	// An error says that the connection has no deadlines, which those of the network have.
	_ = control.SetReadDeadline(time.Now().Add(d))
	return &timed{body, control}
}

// timed is a request's body; when it has come, the time it may take is no matter any more.
type timed struct {
	io.ReadCloser
	control *http.ResponseController
}

func (t *timed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		_ = t.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// follows reports whether a request is answered by a stream: /PACKAGE.Service/Call, also behind /hosts/HOST.
func follows(path string) bool {
	if rest, ok := strings.CutPrefix(path, hostsPath); ok {
		_, call, _ := strings.Cut(rest, "/")
		path = "/" + call
	}
	service, call, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return false
	}
	s, ok := d.(protoreflect.ServiceDescriptor)
	if !ok {
		return false
	}
	m := s.Methods().ByName(protoreflect.Name(call))
	return m != nil && m.IsStreamingServer()
}
