package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// cnitool is the path of the specification's own tool, built by the go command into its cache at the version that
// tools/go.mod pins.
var cnitool = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "-C", "../../../tools", "tool", "-n", "cnitool")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build cnitool: %w\n%s", err, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
})

const cniSwitch = `
switches:
  - name: lab
    mtu: 1400
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: db, vlan: {access: 200}}
`

// network is one CNI network on a host, driven by cnitool.
type network struct {
	*host
	name, tool, conf, data string
	plugins                string // a directory with further plugins, or ""
}

// newNetwork starts an agent and writes the configuration of a network whose addresses host-local gives out; "" for
// none.
func newNetwork(t *testing.T, version, ipam string) *network {
	t.Helper()
	h := newHost(t)
	return networkOn(h, "n-"+h.name, version, ipam)
}

// networkOn is newNetwork with a name.
func networkOn(h *host, name, version, ipam string) *network {
	t := h.t
	t.Helper()
	if _, err := os.Stat("/usr/lib/cni/host-local"); err != nil {
		testkit.Missing(t, "program /usr/lib/cni/host-local (Debian: containernetworking-plugins)")
	}
	tool, err := cnitool()
	if err != nil {
		t.Fatal(err)
	}
	n := &network{host: h, name: name, tool: tool, conf: t.TempDir(), data: t.TempDir()}
	h.start("--config", h.file("heddle.yaml", cniSwitch))
	n.configure(version, "web", ipam)
	return n
}

func (n *network) configure(version, group, ipam string) {
	n.t.Helper()
	var of map[string]any
	if ipam != "" {
		of = map[string]any{"type": "host-local", "subnet": ipam, "dataDir": n.data,
			"routes": []map[string]string{{"dst": "0.0.0.0/0"}}}
	}
	n.configureIPAM(version, group, of)
}

// configureIPAM is configure with any IPAM plugin.
func (n *network) configureIPAM(version, group string, ipam map[string]any) {
	n.t.Helper()
	plugin := map[string]any{
		"type": "heddle-cni", "portGroup": group, "capabilities": map[string]bool{"mac": true},
	}
	if ipam != nil {
		plugin["ipam"] = ipam
	}
	n.configurePlugin(version, plugin)
}

// configurePlugin writes the network's configuration, with the agent's place in that of the plugin.
func (n *network) configurePlugin(version string, plugin map[string]any) {
	n.t.Helper()
	plugin["agent"], plugin["runDir"] = n.host.name, filepath.Join(n.dir, "run")
	b, err := json.Marshal(map[string]any{"cniVersion": version, "name": n.name, "plugins": []any{plugin}})
	if err == nil {
		err = os.WriteFile(filepath.Join(n.conf, "10-heddle.conflist"), b, 0o600)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// cni runs cnitool on the host; env are further variables.
func (n *network) cni(command, ns string, env ...string) (string, error) {
	n.t.Helper()
	plugin, err := exec.LookPath("heddle-cni")
	if err != nil {
		n.t.Fatal(err)
	}
	args := []string{command, n.name}
	if ns != "" {
		args = append(args, ns)
	}
	cmd := exec.Command(n.tool, args...)
	cmd.Env = append(append(os.Environ(), "NETCONFPATH="+n.conf, "CNI_PATH="+filepath.Dir(plugin)+":/usr/lib/cni:"+
		n.plugins),
		env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := n.ns.Start(cmd); err != nil {
		n.t.Fatal(err)
	}
	err = cmd.Wait()
	return out.String(), err
}

// result is what ADD answers, as far as it is looked at.
type result struct {
	Interfaces []struct {
		Name, Mac, Sandbox string
		MTU                int
	}
	IPs []struct{ Address, Gateway string }
}

func (n *network) add(ns *netns.NS, env ...string) result {
	n.t.Helper()
	out, err := n.cni("add", ns.Path(), env...)
	var r result
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	if err != nil || len(r.Interfaces) != 2 {
		n.t.Fatalf("add: %v\n%s", err, out)
	}
	return r
}

func (n *network) ports() []api.Port {
	n.t.Helper()
	var p []api.Port
	if err := json.Unmarshal([]byte(n.must("port", "list", "-o", "json")), &p); err != nil {
		n.t.Fatal(err)
	}
	return p
}

// empty fails the test when anything of a container is left.
func (n *network) empty(what string) {
	n.t.Helper()
	if p := n.ports(); len(p) > 0 {
		n.t.Errorf("%s: ports are left: %+v", what, p)
	}
	if links := run(n.t, n.ns, "ip -br link"); strings.Contains(links, "hc") {
		n.t.Errorf("%s: devices are left:\n%s", what, links)
	}
	leases, err := filepath.Glob(filepath.Join(n.data, n.name, "[0-9]*"))
	if err != nil || len(leases) > 0 {
		n.t.Errorf("%s: addresses are left: %v %v", what, leases, err)
	}
}

func TestCNI_ContainersAreConnectedCheckedAndDisconnected(t *testing.T) {
	testkit.Long(t, "asks for each thing that may be wrong with a container; "+
		"TestCNI_ArgumentsChooseMACAndPortGroup has containers")
	n := newNetwork(t, "1.0.0", "192.0.2.0/24")
	a, b := testkit.NS(t, "a"), testkit.NS(t, "b")
	ra, rb := n.add(a), n.add(b, `CAP_ARGS={"mac": "02:00:00:00:0c:0b"}`)
	if len(rb.IPs) != 1 || !reaches(a, strings.TrimSuffix(rb.IPs[0].Address, "/24")) {
		t.Errorf("the first packet between containers is lost: %+v", rb)
	}
	if rb.Interfaces[1].Mac != "02:00:00:00:0c:0b" || rb.Interfaces[1].MTU != 1400 ||
		rb.Interfaces[1].Sandbox != b.Path() {
		t.Errorf("interface of the second container: %+v", rb.Interfaces[1])
	}
	for _, r := range []result{ra, rb} {
		found := false
		for _, p := range n.ports() {
			if !spec.ValidUUID(p.VM) || p.Adapter != n.name+"/eth0" {
				t.Errorf("a container's port is adapter %q of %q", p.Adapter, p.VM)
			}
			found = found || p.MAC == r.Interfaces[1].Mac && p.Device == r.Interfaces[0].Name && p.PortGroup == "web" &&
				p.State == api.Up
		}
		if !found {
			t.Errorf("no port with the container's MAC and device: %+v in %+v", r, n.ports())
		}
	}
	if routes := run(t, a, "ip route"); !strings.Contains(routes, "default via 192.0.2.1") {
		t.Errorf("routes:\n%s", routes)
	}
	if out, err := n.cni("check", b.Path()); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}
	run(t, b, "ip addr flush dev eth0")
	if out, err := n.cni("check", b.Path()); err == nil || !strings.Contains(out, "lost its address") {
		t.Errorf("check without the address: %v\n%s", err, out)
	}
	for range 2 { // DEL may come more than once
		for _, c := range []*netns.NS{a, b} {
			if out, err := n.cni("del", c.Path()); err != nil {
				t.Errorf("del: %v\n%s", err, out)
			}
		}
	}
	n.empty("after del")
}

func TestCNI_ArgumentsChooseMACAndPortGroup(t *testing.T) {
	n := newNetwork(t, "1.0.0", "")
	a := testkit.NS(t, "a")
	// cnitool has no way to pass CNI_ARGS through; a runtime calls the plugin like this.
	conf, err := os.ReadFile(filepath.Join(n.conf, "10-heddle.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Plugins []map[string]any }
	if err := json.Unmarshal(conf, &list); err != nil {
		t.Fatal(err)
	}
	list.Plugins[0]["name"], list.Plugins[0]["cniVersion"] = n.name, "1.0.0"
	stdin, err := json.Marshal(list.Plugins[0])
	if err != nil {
		t.Fatal(err)
	}
	call := func(args string) (string, error) {
		cmd := exec.Command("heddle-cni")
		cmd.Env = append(os.Environ(), "CNI_COMMAND=ADD", "CNI_CONTAINERID=c0ffee", "CNI_NETNS="+a.Path(),
			"CNI_IFNAME=eth0", "CNI_PATH=/usr/lib/cni", "CNI_ARGS="+args)
		cmd.Stdin = bytes.NewReader(stdin)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := n.ns.Start(cmd); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		return out.String(), err
	}
	if out, err := call("IgnoreUnknown=1;MAC=01:00:5e:00:00:01"); err == nil || !strings.Contains(out, `"code": 4`) {
		t.Errorf("a multicast MAC: %v %s", err, out)
	}
	if out, err := call("IgnoreUnknown=1;K8S_POD_NAME=x;K8S_POD_UID=" + guestUUID +
		";MAC=02:00:00:00:0c:01;HEDDLE_PORT_GROUP=db"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := n.ports()
	if len(p) != 1 || p[0].MAC != "02:00:00:00:0c:01" || p[0].PortGroup != "db" ||
		p[0].VM != guestUUID || p[0].Adapter != n.name+"/eth0" ||
		!strings.HasPrefix(p[0].Name, "cni/"+n.name+"/c0ffee/eth0/") {
		t.Errorf("port: %+v", p)
	}
}

func TestCNI_AFailedAddLeavesNothingAndSaysWhy(t *testing.T) {
	n := newNetwork(t, "1.0.0", "192.0.2.0/24")
	a := testkit.NS(t, "a")
	n.configure("1.0.0", "nowhere", "192.0.2.0/24")
	if out, err := n.cni("add", a.Path()); err == nil ||
		!strings.Contains(out, "switch lab has no port group nowhere; it has db, web") {
		t.Errorf("an unknown port group: %v\n%s", err, out)
	}
	n.empty("unknown port group")
	n.configure("1.0.0", "web", "192.0.2.0/30") // room for one container beside the gateway
	b := testkit.NS(t, "b")
	n.add(b)
	if out, err := n.cni("add", a.Path()); err == nil || !strings.Contains(out, "no IP addresses available") {
		t.Errorf("no address left: %v\n%s", err, out)
	}
	if len(n.ports()) != 1 || strings.Count(run(t, n.ns, "ip -br link"), "hc") != 1 {
		t.Errorf("left: %+v", n.ports())
	}
	n.kill(syscall.SIGKILL)
	if out, err := n.cni("del", b.Path()); err == nil || !strings.Contains(out, "does not answer") {
		t.Errorf("del without an agent: %v\n%s", err, out)
	}
	if out, err := n.cni("add", a.Path()); err == nil || !strings.Contains(out, "does not answer") {
		t.Errorf("add without an agent: %v\n%s", err, out)
	}
	n.start()
	if out, err := n.cni("del", b.Path()); err != nil {
		t.Errorf("del once the agent is back: %v\n%s", err, out)
	}
	n.empty("after all that")
}

func TestCNI_StatusAndGarbageCollection(t *testing.T) {
	n := newNetwork(t, "1.1.0", "")
	if out, err := n.cni("status", "-"); err != nil {
		t.Errorf("status: %v\n%s", err, out)
	}
	a := testkit.NS(t, "a")
	n.add(a)
	n.must("port", "connect", "vm1/eth0", "--port-group", "web") // not the network's
	// The runtime has lost all memory of the container, so that it asks for no DEL.
	memory, err := filepath.Glob("/var/lib/cni/results/" + n.name + "-*")
	if err != nil || len(memory) != 1 {
		t.Fatalf("cnitool's memory: %v %v", memory, err)
	}
	if err := os.Remove(memory[0]); err != nil {
		t.Fatal(err)
	}
	if out, err := n.cni("gc", "-"); err != nil {
		t.Errorf("gc: %v\n%s", err, out)
	}
	if p := n.ports(); len(p) != 1 || p[0].Name != "vm1/eth0" {
		t.Errorf("after gc: %+v", p)
	}
	if links := run(t, n.ns, "ip -br link"); strings.Contains(links, "hc") {
		t.Errorf("after gc:\n%s", links)
	}
	n.kill(syscall.SIGKILL)
	if out, err := n.cni("status", "-"); err == nil || !strings.Contains(out, "does not answer") {
		t.Errorf("status without an agent: %v\n%s", err, out)
	}
}
