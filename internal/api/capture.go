package api

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
	"unsafe"

	"heddle/internal/abi"
)

// Capture asks for frames. Lists that are empty ask for everything.
type Capture struct {
	// Switch says which, where several have a port, an uplink or a segment of the name.
	Switch  string   `json:"switch,omitempty"`
	Ports   []string `json:"ports,omitempty"`   // names of ports and uplinks
	Uplinks []string `json:"uplinks,omitempty"` // names of uplinks
	// Segments are VLANs of one switch: "10", "10-20", "untagged", "ad:10".
	Segments []string `json:"segments,omitempty"`
	Stages   []string `json:"stages,omitempty"`  // see Stages
	Reasons  []string `json:"reasons,omitempty"` // of drops
	// Filter is a program of classic BPF, as pcap-filter(7) expressions compile to.
	Filter []FilterInstruction `json:"filter,omitempty"`
	// Snap is how many bytes of each frame are wanted at most; 0 is all.
	Snap int `json:"snap,omitempty"`
}

// Stages are the names of the stages a frame is captured at, in the order of abi.CaptureAdmit and so on.
func Stages() []string { return []string{"admit", "deliver", "drop"} }

// StageName is the name of abi.CaptureAdmit and so on.
func StageName(stage uint8) string {
	if i := int(stage) - abi.CaptureAdmit; i >= 0 && i < len(Stages()) {
		return Stages()[i]
	}
	return fmt.Sprintf("stage-%d", stage)
}

// FilterInstruction is one instruction of classic BPF.
type FilterInstruction struct {
	Code      uint16 `json:"code"`
	JumpTrue  uint8  `json:"jt"`
	JumpFalse uint8  `json:"jf"`
	K         uint32 `json:"k"`
}

// CaptureStarted is the first thing a capture says. From now on frames are captured.
type CaptureStarted struct {
	ID uint64 `json:"id"` // for EndCapture
}

// CapturePort says which port or uplink has a number in frames that follow. A number may be given to another port later.
type CapturePort struct {
	Number uint16 `json:"number"`
	Switch string `json:"switch"`
	Name   string `json:"name"`
	Uplink bool   `json:"uplink"`
}

// CaptureFrame is one frame or copy. At is in nanoseconds since 1970, UTC; Slot and Other are numbers of ports. Data is valid
// until the next event.
type CaptureFrame struct {
	abi.CaptureRecord
	Data []byte
}

// Time is when the frame was captured.
func (f *CaptureFrame) Time() time.Time { return time.Unix(0, int64(f.At)) }

// CaptureCounts are what a capture has seen so far, all of it after the last frame.
type CaptureCounts struct {
	// Selected are the frames and copies asked for, Lost those of them that came faster than they were read.
	Selected uint64 `json:"selected"`
	Lost     uint64 `json:"lost"`
	// Ended says why these are the last: "" while the capture goes on.
	Ended string `json:"ended,omitempty"`
}

// CaptureEvent is one thing that a capture says: what is not nil.
type CaptureEvent struct {
	Started *CaptureStarted
	Port    *CapturePort
	Frame   *CaptureFrame
	Counts  *CaptureCounts
}

// EndCapture asks for the end of a capture; what was captured until then still comes.
type EndCapture struct {
	ID uint64 `json:"id"`
}

// captureType is the content type of a capture: events, each a byte that says which, the length of what follows as four bytes, lowest
// first, and JSON, or for a frame the record of the kernel and the frame's bytes.
const captureType = "application/vnd.heddle.capture"

const (
	eventStarted = 's'
	eventPort    = 'p'
	eventFrame   = 'f'
	eventCounts  = 'c'
)

const recordSize = int(unsafe.Sizeof(abi.CaptureRecord{}))

// maxCaptureEvent bounds an event, in bytes.
const maxCaptureEvent = recordSize + abi.MaxSnap

// captureFlush is how long what is captured may wait for more.
const captureFlush = 20 * time.Millisecond

// captureFarewell is how long the last of a capture may take when the agent ends.
const captureFarewell = time.Second

// errCaptureOver keeps late writers from an answer that is complete.
var errCaptureOver = errors.New("the capture has ended")

// captureWriter writes events; what is written goes out when much has gathered, and a moment later at the latest.
type captureWriter struct {
	mu    sync.Mutex
	out   *bufio.Writer
	flush func() error
	later *time.Timer
	err   error
}

func (w *captureWriter) emit(e CaptureEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = writeCaptureEvent(w.out, e)
	}
	switch {
	case w.err != nil:
	case e.Frame == nil:
		w.send()
	case w.later == nil:
		w.later = time.AfterFunc(captureFlush, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.send()
		})
	}
	return w.err
}

// send sends what is written; the caller holds the lock.
func (w *captureWriter) send() {
	if w.later != nil {
		w.later.Stop()
		w.later = nil
	}
	if w.err == nil {
		w.err = errors.Join(w.out.Flush(), w.flush())
	}
}

func writeCaptureEvent(w io.Writer, e CaptureEvent) error {
	var kind byte
	var doc any
	switch {
	case e.Frame != nil:
		head := make([]byte, 5, 5+recordSize)
		head[0] = eventFrame
		binary.LittleEndian.PutUint32(head[1:], uint32(recordSize+len(e.Frame.Data)))
		head = append(head, (*[recordSize]byte)(unsafe.Pointer(&e.Frame.CaptureRecord))[:]...)
		if _, err := w.Write(head); err != nil {
			return err
		}
		_, err := w.Write(e.Frame.Data)
		return err
	case e.Started != nil:
		kind, doc = eventStarted, e.Started
	case e.Port != nil:
		kind, doc = eventPort, e.Port
	default:
		kind, doc = eventCounts, e.Counts
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	head := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(b)))
	_, err = w.Write(append(head, b...))
	return err
}

// readCaptureEvent reads one event; io.EOF is the end of the capture. Frames are read into buf.
func readCaptureEvent(r io.Reader, buf []byte) (e CaptureEvent, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return e, err
	}
	n := int(binary.LittleEndian.Uint32(head[1:]))
	if n > len(buf) {
		return e, fmt.Errorf("the agent sent %d bytes at once: it is of another version; restart it with this program", n)
	}
	b := buf[:n]
	if _, err := io.ReadFull(r, b); err != nil {
		return e, noEOF(err)
	}
	switch head[0] {
	case eventFrame:
		if n < recordSize {
			return e, fmt.Errorf("the agent sent a frame of %d bytes without its record", n)
		}
		f := &CaptureFrame{Data: b[recordSize:]}
		copy((*[recordSize]byte)(unsafe.Pointer(&f.CaptureRecord))[:], b)
		e.Frame = f
		return e, nil
	case eventStarted:
		e.Started = &CaptureStarted{}
		err = json.Unmarshal(b, e.Started)
	case eventPort:
		e.Port = &CapturePort{}
		err = json.Unmarshal(b, e.Port)
	case eventCounts:
		e.Counts = &CaptureCounts{}
		err = json.Unmarshal(b, e.Counts)
	default:
		err = fmt.Errorf("the agent sent an event %q that is not known: it is of another version; restart it with this program", head[0])
	}
	return e, err
}

// noEOF tells an end in the midst of an event from one between two.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// serveCapture answers with events until the capture, the client or the server ends.
func serveCapture(server context.Context, w http.ResponseWriter, r *http.Request, s Service) {
	q, err := request[Capture](w, r)
	if err != nil {
		answer(w, nil, err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	defer context.AfterFunc(server, func() {
		cancel()
		_ = control.SetWriteDeadline(time.Now().Add(captureFarewell)) // a client that does not read must not hold up the end
	})()
	began := false
	out := &captureWriter{out: bufio.NewWriterSize(w, 1<<16), flush: control.Flush}
	err = s.Capture(ctx, q, func(e CaptureEvent) error {
		if !began {
			w.Header().Set("Content-Type", captureType)
			began = true
		}
		return out.emit(e)
	})
	out.mu.Lock()
	defer out.mu.Unlock()
	switch {
	case began: // a client that went away needs no answer
		out.send()
		out.err = errCaptureOver
	case err != nil:
		answer(w, nil, err)
	}
}

// Capture captures frames and calls emit with every event, until the agent ends the capture, ctx ends, or emit fails. The last
// event of a capture that was ended in order has counts that say so; without it the agent ended before, which is ErrEnded.
func (c *Client) Capture(ctx context.Context, q Capture, emit func(CaptureEvent) error) error {
	resp, err := c.send(ctx, http.MethodPost, "/capture", q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, json.NewDecoder(resp.Body), "/capture")
	}
	in, buf := bufio.NewReaderSize(resp.Body, 1<<18), make([]byte, maxCaptureEvent)
	for ended := false; !ended; {
		e, err := readCaptureEvent(in, buf)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.explain(err)
		}
		ended = e.Counts != nil && e.Counts.Ended != ""
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// EndCapture ends a capture of any client.
func (c *Client) EndCapture(ctx context.Context, q EndCapture) error {
	return c.act(ctx, "/capture/end", q)
}
