package export

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/platform/audit"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/certs"
)

// rsyslog runs a server that writes what it gets, as it came, to a file, whose path is the result.
func rsyslog(t *testing.T, input string) (path string) {
	t.Helper()
	testkit.Tool(t, "rsyslogd")
	dir := t.TempDir()
	path = filepath.Join(dir, "messages")
	conf := fmt.Sprintf(`global(workDirectory=%q maxMessageSize="64k")
%s
template(name="whole" type="string" string="%%timegenerated%% %%hostname%% %%app-name%% %%msg%%\n")
action(type="omfile" file=%q template="whole")
`, dir, input, path)
	file := filepath.Join(dir, "rsyslog.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := exec.Command("rsyslogd", "-n", "-f", file, "-i", filepath.Join(dir, "pid"))
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("rsyslogd said: %s", said.String())
		}
	})
	return path
}

// papers are files with an authority, and a certificate of it for localhost with its key.
func papers(t *testing.T, dir string) (ca, cert, key string) {
	t.Helper()
	a := certs.New(t, "the authority")
	pair := a.Issue("localhost", time.Hour)
	ca, cert, key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(os.WriteFile(ca, a.PEM(), 0o600), os.WriteFile(cert, pair.Cert, 0o600),
		os.WriteFile(key, pair.Key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return ca, cert, key
}

// received are the lines of the server's file; before it is there, none.
func received(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// checked is what a check of the server's file finds.
func checked(t *testing.T, path, head string) []Checked {
	t.Helper()
	c := NewCheck(head)
	if err := c.File(path, strings.NewReader(received(path))); err != nil {
		t.Fatal(err)
	}
	return c.Chains()
}

// A real syslog server gets the log by UDP: each line once, and the chain of what it wrote has no fault.
func TestExport_ToRsyslogByUDP(t *testing.T) {
	address := testkit.Unused(t)
	_, port, _ := strings.Cut(address, ":")
	path := rsyslog(t, fmt.Sprintf("module(load=\"imudp\")\ninput(type=\"imudp\" address=\"127.0.0.1\" port=%q)", port))
	l := logIn(t, filepath.Join(t.TempDir(), "audit"), audit.DefaultBounds())
	x, stop := runs(t, l, "syslog+udp://"+address)
	defer stop()
	n := 0
	await(t, "the server is there", func() bool { // nobody says that a datagram met nobody
		n++
		writes(t, l, fmt.Sprintf("first-%d", n))
		return strings.Contains(received(path), "first-")
	})
	for i := range 10 {
		writes(t, l, fmt.Sprintf("ann-%d", i))
	}
	await(t, "all of it is written", func() bool { return strings.Contains(received(path), "ann-9") })
	text := received(path)
	for i := range 10 {
		if n := strings.Count(text, fmt.Sprintf(`"who":"ann-%d"`, i)); n != 1 {
			t.Errorf("the entry of ann-%d is there %d times", i, n)
		}
	}
	await(t, "its end is written", func() bool { return x.Status().Behind == 0 })
	list := checked(t, path, "")
	if len(list) != 1 || list[0].Controller != "c1" || list[0].Series != "changes" || len(list[0].Faults) > 0 {
		t.Errorf("%+v", list)
	}
	changed := strings.Replace(text, `"who":"ann-4"`, `"who":"bob-4"`, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if list := checked(t, path, ""); len(list) != 1 || len(list[0].Faults) == 0 {
		t.Errorf("a line that the server's owner changed is not found: %+v", list)
	}
}

// A real syslog server gets the log by TLS, which it has to prove who it is in; the chain has the head of the log.
func TestExport_ToRsyslogByTLS(t *testing.T) {
	dir := t.TempDir()
	ca, cert, key := papers(t, dir)
	address := strings.Replace(testkit.Unused(t), "127.0.0.1", "localhost", 1)
	_, port, _ := strings.Cut(address, ":")
	path := rsyslog(t, fmt.Sprintf(`module(load="imtcp" streamDriver.name="ossl" streamDriver.mode="1"
	streamDriver.authMode="anon")
global(defaultNetstreamDriverCAFile=%q defaultNetstreamDriverCertFile=%q defaultNetstreamDriverKeyFile=%q)
input(type="imtcp" address="127.0.0.1" port=%q)`, ca, cert, key, port))
	l := logIn(t, filepath.Join(dir, "audit"), audit.DefaultBounds())
	for i := range 20 {
		writes(t, l, fmt.Sprintf("ann-%d", i))
	}
	stranger, _, _ := papers(t, t.TempDir())
	y, stopWrong := runs(t, l, "syslog+tls://"+address+"?ca="+stranger)
	await(t, "it refuses a server of another authority", func() bool {
		return strings.Contains(y.Status().Error, "certificate")
	})
	if stopWrong(); y.Status().Sent != 0 || strings.Contains(received(path), "ann") {
		t.Error("a server that nobody vouches for got the log")
	}
	x, stop := runs(t, l, "syslog+tls://"+address+"?ca="+ca)
	defer stop()
	await(t, "all of it is written", func() bool {
		return x.Status().Behind == 0 && strings.Count(received(path), `"chain":`) >= 40
	})
	own, err := l.Verify("")
	if err != nil {
		t.Fatal(err)
	}
	list := checked(t, path, own[0].Head)
	if len(list) != 1 || !list[0].Known || list[0].Lines != 40 || len(list[0].Faults) > 0 ||
		list[0].Head != own[0].Head {
		t.Errorf("%+v", list)
	}
}
