package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/platform/audit"
	"heddle/internal/test/testkit"
)

func logIn(t *testing.T, dir string, b audit.Bounds) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir, b, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func writes(t *testing.T, l *audit.Log, who string) {
	t.Helper()
	c, err := l.Begin(audit.Entry{Who: who, Call: "ApplyDefinition"})
	if err == nil {
		err = c.End(audit.Done, []string{"portGroup dvs/web changed"}, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// runs runs an exporter until the returned function is called.
func runs(t *testing.T, l *audit.Log, target string) (x *Exporter, stop func()) {
	t.Helper()
	to, err := Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	x, err = New(to, Options{Audit: l, Controller: "c1", Log: slog.New(slog.DiscardHandler),
		FirstWait: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g sync.WaitGroup
	g.Go(func() { x.Run(ctx) })
	return x, func() {
		cancel()
		g.Wait()
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func linesOf(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// A file gets each line once, also when it is renamed meanwhile and the exporter starts anew; each is the log's line.
func TestExport_ToAFile(t *testing.T) {
	dir := t.TempDir()
	l := logIn(t, filepath.Join(dir, "audit"), audit.DefaultBounds())
	out := filepath.Join(dir, "out.jsonl")
	writes(t, l, "ann")
	x, stop := runs(t, l, "file:"+out)
	await(t, "the first is there", func() bool { return x.Status().Sent == 2 && x.Status().Behind == 0 })
	if err := os.Rename(out, out+".1"); err != nil {
		t.Fatal(err)
	}
	writes(t, l, "bob")
	await(t, "the second is there", func() bool { return x.Status().Sent == 4 })
	stop()
	writes(t, l, "cid")
	x, stop = runs(t, l, "file:"+out)
	await(t, "the third is there", func() bool { return x.Status().Sent == 2 })
	stop()
	got := append(linesOf(out+".1"), linesOf(out)...)
	paths, err := filepath.Glob(filepath.Join(l.Dir(), "changes-*.jsonl"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	want := linesOf(paths[0])
	if len(got) != 6 || len(want) != 6 {
		t.Fatalf("%d lines are sent of %d", len(got), len(want))
	}
	for i := range want {
		series, controller, text, ok := Original([]byte(got[i]))
		if !ok || series != "changes" || controller != "c1" || string(text) != want[i] {
			t.Errorf("line %d is %s, of %s", i, got[i], want[i])
		}
	}
}

// frames reads messages by their lengths.
func frames(r *bufio.Reader, each func(string)) {
	for {
		head, err := r.ReadString(' ')
		n, bad := strconv.Atoi(strings.TrimSpace(head))
		if err != nil || bad != nil {
			return
		}
		text := make([]byte, n)
		if _, err := io.ReadFull(r, text); err != nil {
			return
		}
		each(string(text))
	}
}

// A syslog server that is away gets all of it when it is there, in order, as RFC 5424 has it.
func TestExport_ToSyslogThatWasAway(t *testing.T) {
	l := logIn(t, filepath.Join(t.TempDir(), "audit"), audit.DefaultBounds())
	address := testkit.Unused(t)
	x, stop := runs(t, l, "syslog+tcp://"+address)
	defer stop()
	writes(t, l, "ann")
	if err := l.Refuse(audit.Entry{Who: "eve", Call: "RemoveHost", Error: "no"}); err != nil {
		t.Fatal(err)
	}
	await(t, "it says that nothing is delivered", func() bool { return x.Status().Error != "" && x.Status().Sent == 0 })
	server, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	got := make(chan string, 10)
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		frames(bufio.NewReader(conn), func(s string) { got <- s })
	}()
	for i, want := range []string{"<109>1 ", "<109>1 ", "<108>1 "} {
		s := <-got
		if !strings.HasPrefix(s, want) || !strings.Contains(s, " heddle-controller - audit-") ||
			!strings.Contains(s, ` - {"number":`) {
			t.Errorf("message %d: %s", i, s)
		}
	}
	await(t, "all is well", func() bool { return x.Status().Error == "" && x.Status().Behind == 0 })
}

// A collector that answers with an error gets the lines again; the token goes with them, and to no other place.
func TestExport_ToACollector(t *testing.T) {
	dir := t.TempDir()
	l := logIn(t, filepath.Join(dir, "audit"), audit.DefaultBounds())
	var mu sync.Mutex
	var calls, lines int
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		calls++
		switch {
		case calls == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case calls == 2:
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		case err == nil && r.Header.Get("Authorization") == "Bearer s3cret":
			lines += bytes.Count(body, []byte("\n"))
		}
	}))
	defer server.Close()
	ca, token := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "token")
	if err := errors.Join(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}), 0o600),
		os.WriteFile(token, []byte("s3cret\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	x, stop := runs(t, l, server.URL+"/in?ca="+ca+"&token-file="+token)
	defer stop()
	writes(t, l, "ann")
	await(t, "it is delivered", func() bool { return x.Status().Sent >= 2 && x.Status().Behind == 0 })
	mu.Lock()
	defer mu.Unlock()
	if lines != 2 || calls < 3 {
		t.Errorf("%d lines in %d calls", lines, calls)
	}
	if strings.Contains(x.Status().Target, "token") {
		t.Errorf("it is called %s", x.Status().Target)
	}
}

// What was removed before it could be sent is told as lost.
func TestExport_TellsWhatIsLost(t *testing.T) {
	dir := t.TempDir()
	l := logIn(t, filepath.Join(dir, "audit"), audit.Bounds{File: 1000, Changes: 2, Refusals: 2})
	out := filepath.Join(dir, "out.jsonl")
	writes(t, l, "ann")
	x, stop := runs(t, l, "file:"+out)
	await(t, "the first is there", func() bool { return x.Status().Sent == 2 })
	stop()
	for range 20 {
		writes(t, l, "bob")
	}
	x, stop = runs(t, l, "file:"+out)
	defer stop()
	await(t, "all that is left is there", func() bool { return x.Status().Sent > 0 && x.Status().Behind == 0 })
	if text := strings.Join(linesOf(out), "\n"); x.Status().Lost != 1 || strings.Count(text, "removed for age") != 1 {
		t.Errorf("%+v:\n%s", x.Status(), text)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{"stdout": "stdout", "file:/var/log/a": "file:/var/log/a", "file:a": "",
		"syslog+udp://h": "syslog+udp://h:514", "syslog+tls://h?ca=/c": "syslog+tls://h:6514",
		"syslog+tcp://h:1":     "syslog+tcp://h:1",
		"syslog+udp://h?ca=/c": "", "https://h/x?a=b&ca=/c": "https://h/x?a=b", "http://h/": "", "https://u:p@h/": "",
		"syslog+tls://h?cert=/c": "", "syslog+quic://h": "", "": ""} {
		got, err := Parse(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
