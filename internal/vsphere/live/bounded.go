package live

import (
	"fmt"
	"io"
	"net/http"
)

// mostAnswer and mostTotal bound what is taken of one answer and of all, in bytes. A page of 100 port groups takes some
// 300 KiB, the configuration of a switch with 2,000 hosts some 5 MiB.
const (
	mostAnswer = 64 << 20
	mostTotal  = 4 << 30
)

// bounded ends answers that are too large. It serves one call at a time, as the reader makes them.
type bounded struct {
	next          http.RoundTripper
	answer, total int64
}

func (b *bounded) RoundTrip(q *http.Request) (*http.Response, error) {
	r, err := b.next.RoundTrip(q)
	if err == nil {
		r.Body = &body{ReadCloser: r.Body, left: b.answer, all: b}
	}
	return r, err
}

// body is that of one answer.
type body struct {
	io.ReadCloser
	left int64
	all  *bounded
}

func (b *body) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	b.left -= int64(n)
	b.all.total -= int64(n)
	switch {
	case b.left < 0:
		return 0, fmt.Errorf("an answer is larger than %d MiB", b.all.answer>>20)
	case b.all.total < 0:
		return 0, fmt.Errorf("all answers are larger than %d GiB", mostTotal>>30)
	}
	return n, err
}
