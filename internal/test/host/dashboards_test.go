package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/agent/metrics"
	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// dashboard is what of packaging/grafana/heddle.json is held against Prometheus.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
			Definition string
		}
	}
	Panels []struct {
		ID          int
		Type, Title string
		Datasource  struct{ Type, UID string }
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct {
			Expr, RefID string
			Datasource  struct{ Type, UID string }
		}
	}
}

func loadDashboard(t *testing.T, name string) dashboard {
	t.Helper()
	b, err := os.ReadFile("../../../packaging/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEachMetricOfTheDashboardsAndAlertsExists: a metric that is renamed leaves no panel and no alert behind.
func TestEachMetricOfTheDashboardsAndAlertsExists(t *testing.T) {
	known := map[string]bool{}
	for _, f := range metrics.Families() {
		known[f.Name] = true
		if f.Type == metrics.Histogram {
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				known[f.Name+part] = true
			}
		}
	}
	for _, name := range []string{"grafana/heddle.json", "prometheus/alerts.yaml"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../../packaging/" + name)
			if err != nil {
				t.Fatal(err)
			}
			used := map[string]bool{}
			for _, m := range regexp.MustCompile(`heddle_[a-z_]+`).FindAllString(string(text), -1) {
				if used[m] = true; !known[m] {
					t.Errorf("%s is no metric", m)
				}
			}
			if len(used) < 10 {
				t.Errorf("it uses %d metrics", len(used))
			}
		})
	}
}

func TestTheDashboardsAreThoseThatGrafanaTakes(t *testing.T) {
	for _, name := range []string{"grafana/heddle.json", "controller/grafana/heddle-controller.json"} {
		t.Run(name, func(t *testing.T) { loadDashboard(t, name).isWhole(t) })
	}
}

// isWhole holds a dashboard against what Grafana takes.
func (d dashboard) isWhole(t *testing.T) {
	t.Helper()
	if d.UID == "" || len(d.UID) > 40 || d.Title == "" || d.SchemaVersion < 30 || len(d.Templating.List) == 0 ||
		d.Templating.List[0].Type != "datasource" {
		t.Errorf("uid %q, title %q, schema %d, variables %+v", d.UID, d.Title, d.SchemaVersion, d.Templating.List)
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have id %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panels %q and %q lie on one another, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" || p.Datasource.Type != "prometheus" {
			t.Errorf("panel %q: %d queries, data source %+v", p.Title, len(p.Targets), p.Datasource)
		}
		for _, q := range p.Targets {
			for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !variables[v[1]] {
					t.Errorf("panel %q uses $%s, which there is not", p.Title, v[1])
				}
			}
		}
	}
}

func TestEveryPanelOfTheDashboardShowsARealHost(t *testing.T) {
	testkit.Long(t, "waits for rates; TestAScrapeTellsWhatTheCommandsTell has metrics")
	h := monitoredBy(t, (*host).deaf)
	h.deaf("tap9")
	h.must("port", "connect", "deaf", "--port-group", "web", "--device", "tap9")
	strange := h.tunnelled()
	c := prometheus(t, h)
	d := loadDashboard(t, "grafana/heddle.json")
	fill := strings.NewReplacer("$__rate_interval", "10s", "$job", "heddle", "$instance", ".*", "$switch", "lab",
		"$port_group", ".*", "$port", ".*")
	waiting := map[string]string{} // the query by the panel
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			waiting[p.Title+" "+q.RefID] = fill.Replace(q.Expr)
		}
	}
	for _, v := range d.Templating.List { // what fills the choices
		if m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition); m != nil {
			waiting["variable "+v.Name] = fmt.Sprintf("count by (%s) (%s)", m[2], fill.Replace(m[1]))
		}
	}
	if len(waiting) < 20 {
		t.Fatalf("only %d queries", len(waiting))
	}
	deadline := time.Now().Add(3 * time.Minute)
	for n := 0; len(waiting) > 0; n++ {
		h.disturb(n)
		strange()
		for panel, expr := range waiting {
			switch series, why := query(t, c, expr); {
			case series < 0:
				t.Errorf("panel %q: %s: %s", panel, expr, why)
				delete(waiting, panel)
			case series > 0:
				delete(waiting, panel)
			}
		}
		if time.Now().After(deadline) {
			break
		}
	}
	for panel, expr := range waiting {
		t.Errorf("panel %q shows nothing: %s", panel, expr)
	}
	if len(waiting) > 0 {
		t.Logf("devices:\n%s", run(t, h.ns, "ip -s -s link show"))
	}
	if series, why := query(t, c, `up{job="heddle"} == 1`); series != 1 {
		t.Errorf("Prometheus does not reach the agent: %s", why)
	}
	var loaded struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal([]byte(fetch(t, c, "http://127.0.0.1:9090/api/v1/rules")), &loaded); err != nil ||
		len(loaded.Data.Groups) != 1 {
		t.Fatalf("%v: %+v", err, loaded)
	}
	for _, r := range loaded.Data.Groups[0].Rules {
		if r.Health == "err" {
			t.Errorf("an alert: %s", r.LastError)
		}
	}
}

// disturb provokes, once more, what a sound host does not have: plans that change, copies refused, frames that a device
// loses.
func (h *host) disturb(n int) {
	h.t.Helper()
	h.must("port", map[bool]string{true: "block", false: "unblock"}[n%2 == 0], "vm2")
}

// tunnelled gives the switch a tunnel whose underlay is too small for some frames of a guest. strange sends it a frame
// of an endpoint that it does not know.
func (h *host) tunnelled() (strange func()) {
	h.t.Helper()
	far := testkit.NS(h.t, "far")
	h.ip("link add u0 mtu 1400 type veth peer name u1 mtu 1400 netns " + far.Name)
	h.ip("addr add 198.51.100.1/24 dev u0")
	h.ip("link set u0 up")
	run(h.t, far, "ip addr add 198.51.100.2/24 dev u1")
	run(h.t, far, "ip addr add 198.51.100.3/24 dev u1")
	run(h.t, far, "ip link set u1 up")
	long := h.guest("tap3", "02:00:00:00:01:03", "192.0.2.3/24")
	config := strings.NewReplacer("    defaults:", "    tunnel: {endpoints: [{address: 198.51.100.1}], peers: "+
		"[{address: 198.51.100.2}]}\n    defaults:", "\nports:", "\n    - {name: far, overlay: {vni: 5000}}\nports:\n"+
		"  - {name: vm3, switch: lab, portGroup: far, device: tap3}").Replace(metricsHost)
	h.must("apply", "-f", h.file("tunnel.yaml", config))
	h.must("port", "connect", "deaf", "--port-group", "web", "--device", "tap9")
	h.awaitPort("vm3", api.Up)
	flood(h.t, long, "192.0.2.255", "-s", "1440", "-M", "dont")
	return func() {
		if err := far.Do(func() error {
			c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(198, 51, 100, 3)},
				&net.UDPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 4789})
			if err != nil {
				return err
			}
			_, err = c.Write(append([]byte{8, 0, 0, 0, 0, 0x13, 0x88, 0}, make([]byte, 60)...))
			return errors.Join(err, c.Close())
		}); err != nil {
			h.t.Error(err)
		}
	}
}

// deaf makes a device whose owner takes no frame: it loses what does not fit its queue. The agent cannot foresee that,
// as it would with a cable that is too narrow: it knows the MTU of both ends, and refuses longer frames.
func (h *host) deaf(device string) {
	h.t.Helper()
	h.ip("tuntap add " + device + " mode tap")
	h.ip("link set " + device + " txqueuelen 2 up")
	if err := h.ns.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		h.t.Cleanup(func() { _ = unix.Close(fd) })
		req, err := unix.NewIfreq(device)
		if err != nil {
			return err
		}
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}); err != nil {
		h.t.Fatal(err)
	}
}
