package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

const metricsHost = `
switches:
  - name: lab
    uplinks: [{name: uplink1, device: up1}, {name: uplink2, device: up2}]
    defaults: {teaming: {policy: originating-port, active: [uplink1, uplink2]}}
    ipfix: {collectors: [{address: 127.0.0.1, port: 4739}]}
    portGroups:
    - {name: web, vlan: {access: 10}, monitoring: {ipfix: true}}
    - {name: nested, vlan: {access: 10}, security: {forgedTransmits: accept, macLearning: {enabled: true}}}
ports:
  - {name: vm1, switch: lab, portGroup: web, device: tap1}
  - {name: vm2, switch: lab, portGroup: nested, device: tap2}
`

// monitored is a host with traffic and drops, whose agent serves metrics on loopback. Its uplinks are cables.
func monitored(t *testing.T) *host { return monitoredBy(t, (*host).cable) }

// monitoredBy is monitored on a host whose uplinks' devices, up1 and up2, are made by uplink.
func monitoredBy(t *testing.T, uplink func(h *host, device string)) *host {
	h := newHost(t)
	run(t, h.ns, "ip link set lo up")
	uplink(h, "up1")
	uplink(h, "up2")
	vm1 := h.guest("tap1", "02:00:00:00:01:01", "192.0.2.1/24")
	h.guest("tap2", "02:00:00:00:01:02", "192.0.2.2/24")
	h.start("--config", h.file("heddle.yaml", metricsHost), "--metrics", metricsAt)
	for _, p := range []string{"vm1", "vm2"} {
		h.awaitPort(p, api.Up)
	}
	flood(t, vm1, "192.0.2.2")
	flood(t, vm1, "192.0.2.255")
	// A device with a MAC of its own behind the guest's: its frames are forged.
	run(t, vm1, "ip link add link eth0 name mv1 address 02:00:00:00:99:99 type macvlan mode private")
	run(t, vm1, "ip addr add 192.0.2.9/24 dev mv1")
	run(t, vm1, "ip link set mv1 up")
	return h
}

// cable makes a device whose other end is up: wire1 for up1.
func (h *host) cable(device string) {
	h.t.Helper()
	wire := strings.Replace(device, "up", "wire", 1)
	h.ip("link add " + device + " type veth peer name " + wire)
	h.ip("link set " + wire + " up")
}

const metricsAt = "127.0.0.1:9946"

// flood sends echo requests until the test ends, also when one that does gives up, and says why it did.
func flood(t *testing.T, from *netns.NS, to string, more ...string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var said strings.Builder
			ping := exec.CommandContext(ctx, "ping", append([]string{"-b", "-q", "-i", "0.005", "-s", "200", to},
				more...)...)
			ping.Stderr = &said
			err := from.Start(ping)
			if err == nil {
				err = ping.Wait()
			}
			if ctx.Err() == nil {
				t.Logf("ping %s ended: %v: %s", to, err, said.String())
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

// in is a client whose connections begin in a namespace.
func in(ns *netns.NS) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = ns.Do(func() (err error) { c, err = new(net.Dialer).DialContext(ctx, network, address); return err })
			return c, err
		}}}
}

func fetch(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(b)
}

func TestAScrapeTellsWhatTheCommandsTell(t *testing.T) {
	h := monitored(t)
	if _, errs, status := h.heddle("agent", "--name", "other", "--metrics", "0.0.0.0:9946"); status != 2 ||
		!strings.Contains(errs, "other machines") {
		t.Errorf("an open door: status %d, %s", status, errs)
	}
	c := in(h.ns)
	var text string
	h.await("frames and forged ones show", func() bool {
		text = fetch(t, c, "http://"+metricsAt+"/metrics")
		return regexp.MustCompile(
			`heddle_port_received_frames_total\{class="unicast",port="vm1",port_group="web",switch="lab"\} [1-9]\d`).MatchString(text) &&
			strings.Contains(text,
				`heddle_port_dropped_frames_total{port="vm1",port_group="web",reason="forged-transmit",switch="lab"}`)
	})
	for _, want := range []string{`heddle_port_up{port="vm1",port_group="web",state="up",switch="lab"} 1`,
		`heddle_uplink_up{state="up",switch="lab",uplink="uplink1"} 1`,
		`heddle_port_mac_limit{port="vm2",port_group="nested",switch="lab"} 4096`,
		`heddle_agent_apply_failures_total 0`, `heddle_failovers_total{switch="lab"} 0`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if out := h.must("metrics"); !strings.Contains(out, "heddle_agent_info{") {
		t.Errorf("heddle metrics:\n%s", out)
	}
	h.ip("link set wire1 down")
	h.await("the failover shows", func() bool {
		text = h.must("metrics")
		return strings.Contains(text, "\nheddle_failovers_total{switch=\"lab\"} 1\n") &&
			strings.Contains(text, `heddle_uplink_up{state="down",switch="lab",uplink="uplink1"} 0`)
	})
	if t.Failed() {
		t.Log(text)
	}
}

// prometheus is a real one that scrapes the host, in the host's namespace.
func prometheus(t *testing.T, h *host) *http.Client {
	t.Helper()
	testkit.Tool(t, "prometheus")
	dir := t.TempDir()
	rules, err := filepath.Abs("../../../packaging/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs: "+
		"[{job_name: heddle, static_configs: [{targets: ['%s']}]}]\n", rules, metricsAt)
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+
		filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:9090", "--log.level=warn")
	var log logBuffer
	p.Stdout, p.Stderr = &log, &log
	if err := h.ns.Start(p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		if t.Failed() {
			t.Logf("prometheus:\n%s", &log)
		}
	})
	return in(h.ns)
}

// query asks Prometheus and gives how many series it finds; -1 is a fault of the query.
func query(t *testing.T, c *http.Client, expr string) (series int, why string) {
	t.Helper()
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	resp, err := c.PostForm("http://127.0.0.1:9090/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, err.Error()
	}
	if answer.Status == "error" {
		return -1, answer.Error
	}
	return len(answer.Data.Result), ""
}

func TestAlertsAreValidAndFireOnWhatTheyAreFor(t *testing.T) {
	testkit.Long(t, "asks promtool for each alert")
	testkit.Tool(t, "promtool")
	for _, args := range [][]string{{"prometheus", "check", "alerts.yaml"}, {"prometheus", "test", "alerts_test.yaml"},
		{"controller/prometheus", "check", "controller-alerts.yaml"},
		{"controller/prometheus", "test", "controller-alerts_test.yaml"}} {
		cmd := exec.Command("promtool", args[1], "rules", args[2])
		cmd.Dir = "../../../packaging/" + args[0]
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}
