package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// monitor answers like QEMU: script contains the answer for each command's name, with %d for its id.
func monitor(t *testing.T, script map[string]string) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	go func() {
		lines := bufio.NewScanner(there)
		for lines.Scan() {
			var q struct {
				Execute string
				ID      uint64
			}
			if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
				return
			}
			out, ok := script[q.Execute]
			if !ok {
				out = `{"return": {}, "id": %d}`
			}
			if strings.Contains(out, "%d") {
				out = fmt.Sprintf(out, q.ID)
			}
			if _, err := fmt.Fprintf(there, "%s\r\n", out); err != nil {
				return
			}
		}
	}()
	return here
}

func client(t *testing.T, script map[string]string, onEvent func(Event)) *Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := New(ctx, monitor(t, script), onEvent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAnswersRefusalsAndEvents(t *testing.T) {
	events := make(chan Event, 1)
	c := client(t, map[string]string{
		"good": `{"event": "STOP", "timestamp": {"seconds": 7, "microseconds": 5}}` + "\r\n" +
			`{"return": [1], "id": %d}`,
		"bad": `{"error": {"class": "GenericError", "desc": "no"}, "id": %d}`,
	}, func(e Event) { events <- e })
	if out, err := c.Execute(t.Context(), "good", nil); err != nil || string(out) != "[1]" {
		t.Errorf("%s %v", out, err)
	}
	if e := <-events; e.Name != "STOP" || !e.Time.Equal(time.Unix(7, 5000)) {
		t.Errorf("event %+v", e)
	}
	var refused *Error
	if _, err := c.Execute(t.Context(), "bad", nil); !errors.As(err, &refused) || refused.Desc != "no" {
		t.Errorf("refusal: %v", err)
	}
}

func TestHostileMonitorEndsTheConnection(t *testing.T) {
	for what, c := range map[string]struct{ sends, want string }{
		"no JSON":  {"hello", "not a message"},
		"too long": {`{"return": "` + strings.Repeat("a", maxMessage), "more than 1048576 bytes"},
		"too deep": {`{"return": ` + strings.Repeat("[", maxDepth), "nested more than 32 deep"},
		"too many": {strings.Repeat("{}\n", maxPerSecond+1), "more than 2000 messages"},
		"too much": {strings.Repeat(`{"event": "X", "data": "`+strings.Repeat("a", 900_000)+`"}`+"\n", 64),
			"more than 2000 messages or 4 MiB within a second"},
		"bad types": {`{"id": "x"}`, "not a message"},
	} {
		t.Run(what, func(t *testing.T) {
			m := client(t, map[string]string{"x": c.sends}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := m.Execute(ctx, "x", nil); !errors.Is(err, ErrClosed) ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if _, err := m.Execute(ctx, "y", nil); !errors.Is(err, ErrClosed) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// endless is a reader that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func TestBytesAreBoundedBySecond(t *testing.T) {
	now := time.Unix(100, 0)
	source := &endless{}
	l := limiter{from: source, now: func() time.Time { return now }}
	p := make([]byte, 1<<16)
	for second := range 3 {
		source.read = 0
		for source.read < maxBytesPerSecond {
			if n, err := l.Read(p); n != len(p) || err != nil {
				t.Fatalf("second %d: %d bytes and %v after %d", second, n, err, source.read)
			}
		}
		if second == 2 {
			break
		}
		now = now.Add(time.Second)
	}
	if _, err := l.Read(p); !errors.Is(err, ErrFlood) {
		t.Errorf("more than a second may have: %v", err)
	}
}

func TestSilentMonitorIsGivenUp(t *testing.T) {
	c := client(t, map[string]string{"x": ``}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Execute(ctx, "x", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDepthIgnoresText(t *testing.T) {
	for line, want := range map[string]bool{
		`{"a": "` + strings.Repeat(`[\"`, 100) + `"}`: false,
		strings.Repeat("[]", 100):                     false,
		strings.Repeat("[", maxDepth):                 false,
		strings.Repeat("{", maxDepth+1):               true,
	} {
		if got := tooDeep([]byte(line)); got != want {
			t.Errorf("%.20s…: %v", line, got)
		}
	}
}

func TestRxFilterAnswers(t *testing.T) {
	const one = `{"name": "net0", "main-mac": "52:54:00:00:00:01", "promiscuous": %s, "unicast": %q, "unicast-overflow": %s}`
	filter := func(promiscuous, unicast, overflow string) string {
		return fmt.Sprintf(one, promiscuous, unicast, overflow)
	}
	mac := [6]byte{0x52, 0x54, 0, 0, 0, 1}
	quiet, asking := RxFilter{"net0", mac, false}, RxFilter{"net0", mac, true}
	for _, c := range []struct {
		answer string
		want   []RxFilter
	}{
		{"[" + filter("false", "normal", "false") + "]", []RxFilter{quiet}},
		{"[" + filter("true", "normal", "false") + "]", []RxFilter{asking}},
		{"[" + filter("false", "all", "false") + "]", []RxFilter{asking}},
		{"[" + filter("false", "normal", "true") + "]", []RxFilter{asking}},
		{"[]", []RxFilter{}},
		{"[" + filter("true", "normal", "false") + "," + filter("false", "none", "false") + "]",
			[]RxFilter{asking, quiet}},
	} {
		m := client(t, map[string]string{"query-rx-filter": `{"return": ` + c.answer + `, "id": %d}`}, nil)
		if got, err := m.RxFilters(t.Context()); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v", c.answer, got, err)
		}
	}
	many := "[" + strings.Repeat(filter("true", "normal", "false")+",", maxFilters) +
		filter("true", "normal", "false") + "]"
	for _, bad := range []string{`{}`, `[{"main-mac": "zz"}]`, `[{"main-mac": "02:00:00:00:00:00:00:01"}]`, `"x"`,
		many} {
		if f, err := parseRxFilters(json.RawMessage(bad)); err == nil {
			t.Errorf("%.60s: %d filters", bad, len(f))
		}
	}
}

// FuzzMessage: whatever a monitor sends, the client does not panic, and does not return filters together with an error.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"return": [{"name": "net0", "main-mac": "52:54:00:00:00:01", "promiscuous": true}], "id": 1}`))
	f.Add([]byte(`{"event": "NIC_RX_FILTER_CHANGED", "data": {"name": "n"}, "timestamp": {"seconds": 1}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parse(line)
		if err != nil {
			return
		}
		if filters, err := parseRxFilters(m.Return); err != nil && filters != nil {
			t.Errorf("%+v with %v", filters, err)
		}
	})
}
