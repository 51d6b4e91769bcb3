package export

import (
	"crypto/tls"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/test/testkit/certs"
)

// overTLS is a configuration with a collector over TLS.
func overTLS(c *streamCollector, f TLS) Config {
	conf := streaming(c, OverTLS)
	conf.TLS = map[Collector]TLS{conf.Collectors[0]: f}
	return conf
}

// Both ends authenticate each other by certificates (RFC 7011 §11.3), over either version of TLS.
func TestTLSWithCertificatesOfBothEnds(t *testing.T) {
	a := certs.New(t, "site")
	for i, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		at := own(uint16(4760 + i))
		server := a.Issue(at.Addr().String(), time.Hour).Server(t)
		server.MinVersion, server.MaxVersion, server.ClientAuth, server.ClientCAs =
			version, version, tls.RequireAndVerifyClientCert, a.Pool()
		c := collectStream(t, at, server)
		r := newRig(t, overTLS(c, files(t, t.TempDir(), a.PEM(), a.Issue("host1", time.Hour))))
		r.until("it is connected", sending)
		records := many(20_000)
		for i := range 10 {
			r.send(records[2000*i : 2000*i+2000]...)
		}
		st := r.until("everything is confirmed", func(st Status) bool { return st.Waiting == (Loss{}) })
		r.x.Close(r.now)
		r.awaitTold(c, st.Records)
		if st.Lost != (Loss{}) || c.told() != sumOf(records) {
			t.Errorf("version %x: told of %+v; status %+v", version, c.told(), st)
		}
		c.sound()
	}
}

func (r *rig) awaitTold(c *streamCollector, n uint64) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); c.told().records < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("the collector was told of %+v, want %d records", c.told(), n)
		}
	}
}

// The server is always verified, a client if required. Errors are reported in words, with what to do. Nothing is lost
// meanwhile.
func TestTLSWhatIsWrongWithCertificatesIsSaid(t *testing.T) {
	a, stranger := certs.New(t, "site"), certs.New(t, "stranger")
	at := own(4770)
	good, mine := a.Issue(at.Addr().String(), time.Hour), a.Issue("host1", time.Hour)
	asking := func(c *tls.Config) *tls.Config {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, a.Pool()
		return c
	}
	old := good.Server(t)
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10
	for name, x := range map[string]struct {
		server *tls.Config
		change func(*TLS)
		want   []string
	}{
		"expired": {a.Issue(at.Addr().String(), -time.Minute).Server(t), nil,
			[]string{"the collector's certificate is valid from ", " to ", "renew it there"}},
		"other name": {a.Issue("other.example.net", time.Hour).Server(t), nil,
			[]string{`the collector's certificate is for "other.example.net" and not for ` + at.Addr().String(),
				"set serverName"}},
		"server name": {good.Server(t), func(f *TLS) { f.ServerName = "flows.example.net" },
			[]string{at.Addr().String(), "and not for flows.example.net"}},
		"other authority": {stranger.Issue(at.Addr().String(), time.Hour).Server(t), nil,
			[]string{"by an authority that ", "ca.pem does not have"}},
		"no ca": {good.Server(t), func(f *TLS) { f.CA = "" },
			[]string{"by an authority that this host (ca is not set) does not have"}},
		"none shown": {asking(good.Server(t)), func(f *TLS) { f.Certificate, f.Key = "", "" },
			[]string{"the collector has refused this host", "certificate"}},
		"stranger shown": {asking(good.Server(t)), func(f *TLS) {
			*f = files(t, t.TempDir(), a.PEM(), stranger.Issue("host1", time.Hour))
		},
			[]string{"the collector has refused this host"}},
		"own expired": {good.Server(t), func(f *TLS) {
			*f = files(t, t.TempDir(), a.PEM(), a.Issue("host1", -time.Minute))
		},
			[]string{"certificate.pem has expired on ", "renew it"}},
		"readable key": {good.Server(t), func(f *TLS) { chmod(t, f.Key, 0o644) },
			[]string{"key.pem can be read or changed by others (its mode is 0644): chmod 600 "}},
		"no such file": {good.Server(t), func(f *TLS) { f.CA += ".gone" },
			[]string{"ca: open ", "ca.pem.gone: no such file"}},
		"no pem": {good.Server(t), func(f *TLS) { write(t, f.CA, "hello") },
			[]string{"ca.pem has no certificate in PEM form"}},
		"no key": {good.Server(t), func(f *TLS) { write(t, f.Key, "SECRET") }, []string{"certificate.pem and key ",
			"key.pem: tls: "}},
		"too old": {old, nil, []string{"protocol version"}},
		"no tls":  {nil, nil, []string{"does it want transport: tcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := collectStream(t, at, x.server)
			f := files(t, t.TempDir(), a.PEM(), mine)
			if x.change != nil {
				x.change(&f)
			}
			var log said
			conf := overTLS(c, f)
			conf.Log = slog.New(slog.NewTextHandler(&log, nil))
			if x.server == nil { // it never answers
				conf.pace.connect = 300 * time.Millisecond
			}
			r := newRig(t, conf)
			r.send(many(300)...)
			st := r.until("it is seen", func(st Status) bool { return st.State == Away })
			for _, want := range x.want {
				if !strings.Contains(st.Why, want) {
					t.Errorf("%q, want %q in it", st.Why, want)
				}
			}
			if st.Waiting.Records != 300 || st.Records != 0 || st.Lost != (Loss{}) || st.Unsure != (Loss{}) ||
				c.told() != (totals{}) {
				t.Errorf("told of %+v; status %+v", c.told(), st)
			}
			for _, secret := range append(mine.Secrets(), "SECRET") {
				if strings.Contains(log.String()+st.Why, secret) {
					t.Errorf("a secret is in the log: %s", log.String())
				}
			}
		})
	}
}

func chmod(t *testing.T, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Replaced files are used without a restart, and nothing is lost; files that can't be used are reported, and the
// session goes on.
func TestTLSFilesThatChangeAreUsed(t *testing.T) {
	a, dir := certs.New(t, "site"), t.TempDir()
	at := own(4780)
	server := a.Issue(at.Addr().String(), time.Hour).Server(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, a.Pool()
	var mu sync.Mutex
	var seen []string
	server.VerifyConnection = func(s tls.ConnectionState) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s.PeerCertificates[0].Subject.CommonName)
		return nil
	}
	c := collectStream(t, at, server)
	f := files(t, dir, a.PEM(), a.Issue("old", time.Hour))
	r := newRig(t, overTLS(c, f))
	r.until("it is connected", sending)
	r.send(many(1000)...)
	write(t, f.Key, "half a key")
	st := r.until("it is seen", func(st Status) bool {
		return strings.Contains(st.Why, "the files of TLS have changed and can't be used")
	})
	if st.State != Sending {
		t.Errorf("status %+v", st)
	}
	r.send(many(1000)...)
	files(t, dir, a.PEM(), a.Issue("new", time.Hour))
	st = r.until("there is another session", func(st Status) bool {
		return len(c.sessions()) == 2 && sending(st) &&
			st.Why == ""
	})
	r.send(many(1000)...)
	st = r.until("everything is confirmed", func(st Status) bool { return st.Waiting == (Loss{}) })
	r.x.Close(r.now)
	r.awaitTold(c, 3000)
	mu.Lock()
	defer mu.Unlock()
	if strings.Join(seen, " ") != "old new" || st.Records != 3000 || st.Lost != (Loss{}) || st.Unsure != (Loss{}) ||
		c.told().records != 3000 {
		t.Errorf("the collector saw %v and was told of %+v; status %+v", seen, c.told(), st)
	}
	c.sound()
}
