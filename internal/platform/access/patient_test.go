package access

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// deadlined is where an answer goes, with the deadline in force and how often one was set.
type deadlined struct {
	*httptest.ResponseRecorder
	until time.Time
	set   int
}

func (d *deadlined) SetWriteDeadline(until time.Time) error {
	if d.until = until; !until.IsZero() {
		d.set++
	}
	return nil
}

// What is written has to be taken within a time. A stream on which nothing waits has no deadline: HTTP/2 would reset it
// once that has passed, and an answer that is quiet for half a minute would be cut off.
func TestPatient_HasADeadlineWhileSomethingWaits(t *testing.T) {
	d := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	w := Patient(d, time.Hour)
	for range 3 {
		if _, err := w.Write([]byte("piece")); err != nil || d.until.IsZero() {
			t.Fatalf("written without a deadline: %v", err)
		}
	}
	if d.set != 1 {
		t.Errorf("%d deadlines for three small pieces", d.set)
	}
	if err := http.NewResponseController(w).Flush(); err != nil || !d.until.IsZero() || !d.Flushed {
		t.Errorf("what was flushed leaves deadline %v: %v", d.until, err)
	}
	f, is := w.(http.Flusher)
	if !is {
		t.Fatal("streams cannot be flushed")
	}
	if _, err := w.Write([]byte("more")); err != nil || d.until.IsZero() {
		t.Fatalf("written without a deadline: %v", err)
	}
	if f.Flush(); !d.until.IsZero() || d.Body.String() != "piecepiecepiecemore" {
		t.Errorf("deadline %v after %q", d.until, d.Body)
	}
}
