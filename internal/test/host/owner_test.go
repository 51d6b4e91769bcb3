package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/attach/incus"
	"heddle/internal/plan/problem"
	"heddle/internal/test/testkit"
)

// attacher is a way to connect guests. All guests have one name, and a device each.
type attacher struct {
	kind, port, device string
	start, end         func()
}

// sameName is the name of all guests: one that a domain, a container and a VMID may have.
const sameName = "9100"

// together is a host on which one guest of each kind runs.
type together struct {
	*proxmox
	all []*attacher
	// instances are what Incus has.
	instances []incus.Instance
	follower  *incus.Follower
}

func newTogether(t *testing.T) *together {
	t.Helper()
	w := &together{proxmox: newProxmox(t, map[string]string{
		"qemu-server/9100.conf": "#heddle net0=web\nname: x\nnet0: virtio=02:00:00:00:91:00,bridge=vmbr9\n",
		"qemu-server/9200.conf": "name: y\nnet0: virtio=02:00:00:00:92:00,bridge=vmbr9\n",
	}, "")}
	w.host.start("--config", w.file("heddle.yaml", hookSwitch), "--libvirt-dir", "")
	w.follower = &incus.Follower{Agent: api.NewClient(api.SocketPath(filepath.Join(w.dir, "run"), w.name)), Host: w,
		Instances: func(context.Context) ([]incus.Instance, error) { return w.instances, nil },
		Warn:      func(format string, args ...any) { t.Errorf("incus: "+format, args...) }}
	w.addHypervisors()
	w.addContainers()
	return w
}

// Has, Release and QEMU are the host as the follower of Incus sees it.
func (w *together) Has(device string) bool {
	_, err := w.ns.Output("ip", "link", "show", "dev", device)
	return err == nil
}

func (w *together) Release(device string) error {
	_, err := w.ns.Output("ip", "link", "set", device, "nomaster")
	return err
}

func (w *together) QEMU(string) (runs, incoming bool) { return false, false }

// domain calls libvirt's hook; wants is what the domain's metadata has.
func (w *together) domain(name, uuid, wants, operation string) {
	w.t.Helper()
	cmd := w.command("libvirt-hook", name, operation, "begin", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`<domain><name>%s</name><uuid>%s</uuid><metadata>%s</metadata><devices>
<interface type='ethernet'><mac address='52:54:00:00:91:01'/><target dev='vnet0'/><alias name='ua-a'/></interface>
</devices></domain>`, name, uuid, wants))
	w.runs(cmd.Args, func() (string, error) { return output(w, cmd) })
}

const (
	domainUUID = "5e0c3a1e-1111-4222-8333-000000009101"
	itsPort    = `<h:ports xmlns:h="urn:heddle:domain:1"><h:port portGroup="web"/></h:ports>`
)

func (w *together) addHypervisors() {
	w.all = append(w.all, &attacher{"libvirt", sameName + "/ua-a", "vnet0",
		func() { w.domain(sameName, domainUUID, itsPort, "start") },
		func() { w.domain(sameName, domainUUID, itsPort, "stopped") },
	}, &attacher{"proxmox", sameName + "/net0", "tap9100i0",
		func() { w.mustHook(sameName, "pre-start"); w.mustHook(sameName, "post-start") },
		func() { w.mustHook(sameName, "post-stop") },
	}, &attacher{"qemu", sameName + "/tapq", "tapq", func() {
		w.mustScript("qemu/heddle-ifup", []string{"HEDDLE_PORT_GROUP=web", "HEDDLE_MAC=02:00:00:00:91:02",
			"HEDDLE_PORT=" + sameName + "/tapq", "HEDDLE_VM_UUID=5e0c3a1e-1111-4222-8333-000000009102"}, "tapq")
	}, func() { w.mustScript("qemu/heddle-ifdown", nil, "tapq") }})
}

func (w *together) addContainers() {
	lxc := func(phase string) func() {
		return func() {
			w.mustScript("lxc/heddle-veth", nil, "lab/web", sameName, "net", phase, "veth", "vethl")
		}
	}
	instance := incus.Instance{Name: sameName, Project: "default", Type: "container", Config: map[string]string{
		"user.heddle": "eth0=lab/web", "volatile.uuid": "5e0c3a1e-1111-4222-8333-000000009103",
		"volatile.eth0.host_name": "vethi"}, Devices: map[string]map[string]string{"eth0": {"type": "nic"}}}
	sync := func(all ...incus.Instance) func() {
		return func() {
			w.instances = all
			if _, err := w.follower.Sync(w.t.Context()); err != nil {
				w.t.Error(err)
			}
		}
	}
	unused := instance
	unused.Config = map[string]string{"volatile.uuid": instance.Config["volatile.uuid"]}
	w.all = append(w.all, &attacher{"lxc", sameName + "/vethl", "vethl", lxc("up"), lxc("down")},
		&attacher{"incus", sameName + "/eth0", "vethi", sync(instance), sync(unused)}, w.cni())
}

// cni is a container of CNI, whose device the plugin makes.
func (w *together) cni() *attacher {
	in := testkit.NS(w.t, "pod")
	call := func(command string) func() {
		return func() {
			cmd := w.command("cni")
			cmd.Env = append(cmd.Env, "CNI_COMMAND="+command, "CNI_CONTAINERID="+sameName, "CNI_NETNS="+in.Path(),
				"CNI_IFNAME=eth0", "CNI_PATH=/usr/lib/cni")
			cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "net", "type": "heddle-cni",
				"portGroup": "web", "agent": %q, "runDir": %q}`, w.name, filepath.Join(w.dir, "run")))
			w.runs(cmd.Args, func() (string, error) { return output(w, cmd) })
		}
	}
	a := &attacher{kind: "cni", end: call("DEL")}
	a.start = func() {
		call("ADD")()
		for _, p := range w.ports() {
			if strings.HasPrefix(p.Name, "cni/") {
				a.port, a.device = p.Name, p.Device
			}
		}
	}
	return a
}

func output(w *together, cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := w.ns.Start(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}

func (w *together) runs(what []string, f func() (string, error)) {
	w.t.Helper()
	if out, err := f(); err != nil {
		w.t.Fatalf("%q: %v\n%s", what, err, out)
	}
}

func (w *together) mustScript(path string, env []string, args ...string) {
	w.t.Helper()
	w.runs(append([]string{path}, args...), func() (string, error) { return w.script(path, env, args...) })
}

func (w *together) ports() (list []api.Port) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.must("port", "list", "-o", "json")), &list); err != nil {
		w.t.Fatal(err)
	}
	return list
}

// plug makes a guest's device, as its hypervisor does before it calls its hook.
func (w *together) plug(a *attacher) {
	if a.kind == "cni" || w.Has(a.device) {
		return
	}
	w.ip("link add " + a.device + " type veth peer name p" + a.device)
	w.ip("link set p" + a.device + " up")
}

// served are the ports that have their devices, by name.
func (w *together) served() (names []string) {
	for _, p := range w.ports() {
		if p.State != api.Pending {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *together) wants(what string, but ...string) {
	w.t.Helper()
	var want []string
	for _, a := range w.all {
		if !slices.Contains(but, a.kind) {
			want = append(want, a.port)
		}
	}
	slices.Sort(want)
	if got := w.served(); !slices.Equal(got, want) {
		w.t.Errorf("%s: ports %q, want %q", what, got, want)
	}
}

// Guests of all kinds with one name run beside each other: whatever one of them does, the others keep their ports.
// After their devices are gone unheard, no port takes the device of its name that somebody else has by then.
func TestS148_S149_S150_APortBelongsToItsGuestInAllKinds(t *testing.T) {
	testkit.Long(t, "calls each integration several times; the rules have tests of their own")
	w := newTogether(t)
	for _, a := range w.all {
		w.plug(a)
		a.start()
	}
	w.wants("all run")
	for _, a := range w.all {
		a.end()
		w.wants(a.kind+" has ended", a.kind)
		w.plug(a)
		a.start()
		w.wants(a.kind + " runs again")
	}
	w.domain(sameName, "5e0c3a1e-1111-4222-8333-000000009109", "", "start")
	w.domain(sameName, "5e0c3a1e-1111-4222-8333-000000009109", "", "stopped")
	for _, phase := range []string{"pre-start", "post-start", "post-stop"} {
		w.mustHook("9200", phase)
	}
	w.wants("guests without Heddle have come and gone")

	w.kill(syscall.SIGKILL)
	w.ip("link add br0 type bridge")
	for _, a := range w.all {
		w.ip("link del " + a.device)
		w.ip("link add " + a.device + " type veth peer name p" + a.device)
		w.ip("link set " + a.device + " up master br0")
	}
	w.host.start("--libvirt-dir", "")
	for _, a := range w.all {
		if p := w.port(a.port); p.State != api.Pending || p.ReasonCode != problem.OwnerAwaited ||
			w.where(a.device) != "br0" || !strings.Contains(run(t, w.ns, "ip -o link show dev "+a.device), ",UP") {
			t.Errorf("%s: port %+v; %s", a.kind, p, run(t, w.ns, "ip -o link show dev "+a.device))
		}
	}
	// The domain was renamed meanwhile; the container of CNI does not come again.
	w.all[0].port = "renamed/ua-a"
	w.all[0].start = func() { w.domain("renamed", domainUUID, itsPort, "start") }
	for _, a := range w.all {
		w.ip("link del " + a.device)
		w.plug(a)
		if a.kind == "cni" {
			a.end()
			continue
		}
		a.start()
	}
	w.wants("all are connected again", "cni")
	if len(w.ports()) != len(w.all)-1 {
		t.Errorf("ports are left: %+v", w.ports())
	}
}
