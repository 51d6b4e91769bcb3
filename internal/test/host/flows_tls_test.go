package host

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/flow/export"
	"heddle/internal/flow/ipfix"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/certs"
)

const flowsOverTLS = `
switches:
  - name: lab
    ipfix:
      idleFlowTimeout: 10s
      collectors:
        - {address: 127.0.0.1, transport: tls, ca: DIR/ca.pem, certificate: DIR/host.pem, key: DIR/host.key}
    portGroups: [{name: web, monitoring: {ipfix: true}}]
ports:
  - {name: a, switch: lab, portGroup: web, device: pa}
  - {name: b, switch: lab, portGroup: web, device: pb}
`

// tlsCollector is a collector of IPFIX over TLS on the host's loopback. It knows its exporters by certificates, as they
// know it.
type tlsCollector struct {
	h        *host
	conf     *tls.Config
	listener net.Listener
	serving  sync.WaitGroup

	mu       sync.Mutex
	open     []net.Conn
	sessions int            // that ended their handshake
	flows    map[uint64]int // records by the port that they go to
	failed   error
}

// begin listens, also once more after an end.
func (c *tlsCollector) begin() {
	c.h.t.Helper()
	var l net.Listener
	err := c.h.ns.Do(func() (err error) {
		l, err = net.Listen("tcp4", "127.0.0.1:4740")
		return err
	})
	if err != nil {
		c.h.t.Fatal(err)
	}
	c.listener = tls.NewListener(l, c.conf)
	c.serving.Go(func() {
		for {
			conn, err := c.listener.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.open = append(c.open, conn)
			c.mu.Unlock()
			c.serving.Go(func() { c.serve(conn.(*tls.Conn)) })
		}
	})
}

// end is that of the collector's process: everything it had is closed.
func (c *tlsCollector) end() {
	if c.listener == nil {
		return
	}
	_ = c.listener.Close()
	c.mu.Lock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open, c.listener = nil, nil
	c.mu.Unlock()
	c.serving.Wait()
}

// serve reads messages until the connection ends.
func (c *tlsCollector) serve(conn *tls.Conn) {
	defer conn.Close()
	if conn.Handshake() != nil {
		return
	}
	c.mu.Lock()
	c.sessions++
	c.mu.Unlock()
	d, session := ipfix.NewDecoder(ipfix.Limits{}), ipfix.Session{Protocol: ipfix.TCP}
	for {
		b := make([]byte, 1<<16)
		if _, err := io.ReadFull(conn, b[:16]); err != nil {
			return
		}
		h, err := ipfix.ParseHeader(b[:16])
		if err == nil {
			if _, err = io.ReadFull(conn, b[16:h.Length]); err != nil {
				return
			}
			_, err = d.Decode(session, time.Now(), b[:h.Length], c.take)
		}
		if err != nil {
			c.mu.Lock()
			c.failed = errors.Join(c.failed, err)
			c.mu.Unlock()
			return
		}
	}
}

func (c *tlsCollector) take(r *ipfix.Record) error {
	v, ok := r.Named("destinationTransportPort")
	if !ok {
		return nil
	}
	port, err := v.Unsigned()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flows[port]++
	return err
}

// told is how many records came of flows to that port.
func (c *tlsCollector) told(port uint64) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flows[port]
}

// flowsTo returns the agent's status of its collector.
func (h *host) flowsTo() api.FlowCollector {
	h.t.Helper()
	var s api.FlowStatus
	if err := json.Unmarshal([]byte(h.must("flows", "status", "-o", "json")), &s); err != nil {
		h.t.Fatal(err)
	}
	if len(s.Switches) != 1 || len(s.Switches[0].Collectors) != 1 {
		h.t.Fatalf("%+v", s)
	}
	return s.Switches[0].Collectors[0]
}

// put writes a file as a tool that renews certificates does.
func put(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// TestFlowsOverTLS_AWholeAgent: a collector whose authority the agent does not know is sent nothing, and every place
// where a user looks says why; when the file is right, and when the collector was away, everything comes that was seen
// meanwhile; the key is shown nowhere.
func TestFlowsOverTLS_AWholeAgent(t *testing.T) {
	testkit.Long(t, "waits for collectors that are away and for their retries; smoke has records of flows")
	h := newHost(t)
	site, stranger := certs.New(t, "site"), certs.New(t, "stranger")
	mine := site.Issue("host1", time.Hour)
	put(t, filepath.Join(h.dir, "ca.pem"), stranger.PEM())
	put(t, filepath.Join(h.dir, "host.pem"), mine.Cert)
	put(t, filepath.Join(h.dir, "host.key"), mine.Key)
	conf := site.Issue("127.0.0.1", time.Hour).Server(t)
	conf.ClientAuth, conf.ClientCAs = tls.RequireAndVerifyClientCert, site.Pool()
	h.ip("link set lo up")
	c := &tlsCollector{h: h, conf: conf, flows: map[uint64]int{}}
	c.begin()
	t.Cleanup(c.end)

	a := h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
	h.guest("pb", "02:00:00:00:00:0b", "192.0.2.11/24")
	h.start("--config", h.file("heddle.yaml", strings.ReplaceAll(flowsOverTLS, "DIR", h.dir)))
	h.awaitPort("a", api.Up)
	h.awaitPort("b", api.Up)
	// A datagram to a port at which nobody listens is a flow that ends by its idle timeout; each port meters it.
	flow := func(port string) {
		t.Helper()
		err := a.Do(func() error {
			to, err := net.Dial("udp4", "192.0.2.11:"+port)
			if err != nil {
				return err
			}
			defer to.Close()
			_, err = to.Write([]byte("hello"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	flow("5001")
	fault := "the collector's certificate is by an authority that " + h.dir + "/ca.pem does not have"
	h.await("the agent refuses the collector", func() bool {
		s := h.flowsTo()
		return s.State == string(export.Away) && strings.Contains(s.LastError, fault) && s.Waiting > 0
	})
	if out := h.must("flows", "status"); !strings.Contains(out, "collector tls://127.0.0.1:4740 of switch lab: "+
		fault) {
		t.Errorf("flows status:\n%s", out)
	}
	h.awaitEvent(event.Collector, "", "flow collector tls://127.0.0.1:4740 is away: "+fault)
	if c.told(5001) != 0 || c.sessions != 0 {
		t.Errorf("a collector that is not trusted had %d sessions and %d records", c.sessions, c.told(5001))
	}

	put(t, filepath.Join(h.dir, "ca.pem"), site.PEM())
	h.await("what waited has come", func() bool { return c.told(5001) > 0 })
	h.await("it is sent records", func() bool {
		s := h.flowsTo()
		return s.State == api.CollectorSending &&
			s.LastError == ""
	})
	h.awaitEvent(event.Collector, "", "flow collector tls://127.0.0.1:4740 is sent records")

	c.end()
	h.await("the agent sees that the collector has gone", func() bool {
		s := h.flowsTo()
		return s.State == string(export.Away) &&
			strings.Contains(s.LastError, "nobody listens at 127.0.0.1:4740 over TCP")
	})
	flow("5002")
	h.await("the record waits", func() bool { return h.flowsTo().Waiting > 0 })
	c.conf = site.Issue("127.0.0.1", time.Hour).Server(t) // renewed with the restart
	c.conf.ClientAuth, c.conf.ClientCAs = tls.RequireAndVerifyClientCert, site.Pool()
	c.begin()
	h.await("what waited has come to the collector that started again", func() bool { return c.told(5002) > 0 })
	if s := h.flowsTo(); s.Lost != 0 || s.State != api.CollectorSending {
		t.Errorf("%+v", s)
	}
	c.end()
	if c.failed != nil || c.sessions != 2 {
		t.Errorf("%d sessions: %v", c.sessions, c.failed)
	}
	h.keepsSecret(mine.Secrets())
}

// keepsSecret looks for secrets in everything that the agent shows or writes, but the file that they came from.
func (h *host) keepsSecret(secrets []string) {
	h.t.Helper()
	shown := map[string]string{"the log": h.log.String()}
	for _, args := range []string{"flows status", "flows status -o json", "events --no-follow --last -1 -o json",
		"port list -o json", "switch list -o json", "doctor", "advise"} {
		out, errs, _ := h.heddle(strings.Fields(args)...)
		shown[args] = out + errs
	}
	err := filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "bpf" { // the kernel's
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || filepath.Base(path) == "host.key" {
			return err
		}
		b, err := os.ReadFile(path)
		shown[path] = string(b)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if shown[filepath.Join(h.dir, "state", h.name, "state.json")] == "" || shown["flows status"] == "" {
		h.t.Error("there is nothing to look at")
	}
	for where, text := range shown {
		for _, s := range secrets {
			if strings.Contains(text, s) {
				h.t.Errorf("the key is in %s", where)
			}
		}
	}
}
