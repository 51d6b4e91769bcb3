package incus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
)

const (
	vmID        = "33a89473-5f77-4d57-b6f6-cf5d80e2284a"
	containerID = "33a89473-5f77-4d57-b6f6-cf5d80e2284b"
)

// answer is as Incus 6.0 gives it, less what nobody reads here.
const answer = `{"type": "sync", "status": "Success", "status_code": 200, "metadata": [
 {"name": "c1", "project": "default", "type": "container", "status": "Running",
  "expanded_config": {"user.heddle": "eth0=lab/web eth1=db", "volatile.uuid": "` + containerID + `",
   "volatile.eth0.host_name": "veth1", "volatile.eth0.hwaddr": "10:66:6a:00:00:01"},
  "expanded_devices": {"root": {"type": "disk", "path": "/"}, "eth0": {"type": "nic", "nictype": "p2p"},
   "eth1": {"type": "nic", "nictype": "p2p", "host_name": "c1-eth1"}}},
 {"name": "vm1", "project": "shop", "type": "virtual-machine", "status": "Running",
  "expanded_config": {"user.heddle": "eth0=lab/web", "user.heddle.needs": "storage vmk1",
   "volatile.uuid": "` + vmID + `",
   "user.heddle.monitor": "/run/incus/vm1.heddle", "volatile.eth0.hwaddr": "10:66:6a:00:00:02",
   "volatile.eth0.host_name": "tap2"},
  "expanded_devices": {"eth0": {"type": "nic", "nictype": "p2p"}}},
 {"name": "other", "project": "default", "type": "container", "expanded_config": {},
  "expanded_devices": {"eth0": {"type": "nic", "nictype": "bridged"}}}]}`

// served is a client of an Incus that gives one answer.
func served(t *testing.T, status int, body string) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "unix.socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.String() != "/1.0/instances?recursion=1&all-projects=true" {
				t.Errorf("asked for %s", r.URL)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})}}
	s.Start()
	t.Cleanup(s.Close)
	return NewClient(socket)
}

func TestInstancesWantPorts(t *testing.T) {
	all, err := served(t, 200, answer).Instances(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	var got []string
	for _, i := range all {
		wants, err := i.Wants()
		if err != nil {
			t.Error(err)
		}
		for _, w := range wants {
			got = append(got, strings.Join([]string{w.Name, w.Switch, w.PortGroup, w.Device, w.MAC, w.VM, w.Adapter,
				w.Monitor.Socket, strings.Join(w.Needs, "+")}, "|"))
		}
	}
	want := []string{
		"c1/eth0|lab|web|veth1||" + containerID + "|eth0||",
		"c1/eth1||db|c1-eth1||" + containerID + "|eth1||",
		"shop_vm1/eth0|lab|web|tap2|10:66:6a:00:00:02|" + vmID + "|eth0|/run/incus/vm1.heddle|storage+vmk1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("wants\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWrongWordsOfAnInstanceAreNamed(t *testing.T) {
	i := Instance{Name: "c1", Config: map[string]string{keyPorts: "eth0=web web eth9=web"},
		Devices: map[string]map[string]string{"eth0": {"type": "nic", "host_name": "veth1"}}}
	wants, err := i.Wants()
	if len(wants) != 1 || err == nil || !strings.Contains(err.Error(), `"web" is not ADAPTER=PORT-GROUP`) ||
		!strings.Contains(err.Error(), "no network adapter eth9") {
		t.Errorf("%+v, %v", wants, err)
	}
}

func TestIncusThatRefusesOrIsAwayIsAnError(t *testing.T) {
	_, err := served(t, 403, `{"type": "error", "error": "not authorized"}`).Instances(t.Context())
	if err == nil || !strings.Contains(err.Error(), "403") || !strings.Contains(err.Error(), "not authorized") {
		t.Error(err)
	}
	if _, err := NewClient(filepath.Join(t.TempDir(), "none")).Instances(t.Context()); err == nil {
		t.Error("no error where nobody answers")
	}
	if _, err := served(t, 200, "<html>").Instances(t.Context()); err == nil {
		t.Error("no error where the answer is none")
	}
}

// played is a host and its agent, played by the test.
type played struct {
	devices map[string]bool
	qemus   map[string]bool // by UUID: it waits for a guest
	ports   []api.Port
	calls   []string
	refuse  error
	lacks   error // refuses a guest that arrives, unless forced
}

func (p *played) Has(device string) bool { return p.devices[device] }

func (p *played) Release(device string) error {
	p.calls = append(p.calls, "release "+device)
	return nil
}

func (p *played) QEMU(uuid string) (runs, incoming bool) {
	incoming, runs = p.qemus[uuid]
	return runs, incoming
}

func (p *played) State(context.Context) (*api.State, error) {
	return &api.State{Ports: slices.Clone(p.ports)}, nil
}

func (p *played) connect(how string, c api.Connect) (*api.Applied, error) {
	p.calls = append(p.calls, how+" "+c.Name)
	if p.refuse != nil {
		return nil, p.refuse
	}
	p.ports = append(p.ports, api.Port{Switch: c.Switch, Name: c.Name, PortGroup: c.PortGroup, Device: c.Device,
		MAC: c.MAC, VM: c.VM, Owner: c.Owner, Origin: api.FromRun})
	return &api.Applied{}, nil
}

func (p *played) Reconnect(_ context.Context, c api.Connect) (*api.Applied, error) {
	return p.connect("connect", c)
}

func (p *played) ConnectIncoming(_ context.Context, q api.Incoming) (*api.Applied, error) {
	if p.lacks != nil && !q.Force {
		return nil, p.lacks
	}
	return p.connect("incoming", q.Connect)
}

func (p *played) Disconnect(_ context.Context, q api.Disconnect) error {
	p.calls = append(p.calls, "disconnect "+q.Port)
	p.ports = slices.DeleteFunc(p.ports, func(o api.Port) bool { return o.Name == q.Port })
	return nil
}

// Incus starts a VM that arrives whatever its host lacks: that is said, and the VM has its port. What is wrong with the
// port itself stays an error.
func TestS100_AVMOfIncusHasItsPortWhateverTheHostLacks(t *testing.T) {
	p := &played{devices: map[string]bool{"tap2": true}, qemus: map[string]bool{vmID: true},
		lacks: api.NewError(api.Invalid, "port shop_vm1/eth0: its guest needs storage, and it is not here")}
	var warned []string
	f := &Follower{Agent: p, Host: p, Instances: served(t, 200, answer).Instances,
		Warn: func(format string, a ...any) { warned = append(warned, fmt.Sprintf(format, a...)) }}
	p.refuse = errors.New("no such port group")
	if _, err := f.Sync(t.Context()); err == nil || len(p.ports) > 0 {
		t.Errorf("%v, %+v", err, p.ports)
	}
	warned, p.refuse = nil, nil
	if whole, err := f.Sync(t.Context()); err != nil || !whole || len(p.ports) != 1 || len(warned) != 1 ||
		!strings.Contains(warned[0], "even so: port shop_vm1/eth0: its guest needs storage") {
		t.Errorf("%v, %+v, warned %q", err, p.ports, warned)
	}
}

// Ports follow what Incus's instances have: a container's when its device is there, a VM's when its QEMU says whether
// the guest starts or arrives; each once, and until its device is gone.
func TestS99_PortsFollowIncussInstances(t *testing.T) {
	p := &played{devices: map[string]bool{}, qemus: map[string]bool{}}
	var warned []string
	f := &Follower{Agent: p, Host: p, Instances: served(t, 200, answer).Instances,
		Warn: func(format string, a ...any) { warned = append(warned, fmt.Sprintf(format, a...)) }}
	look := func(what string, whole bool, want ...string) {
		t.Helper()
		p.calls = nil
		if got, err := f.Sync(t.Context()); err != nil || got != whole || !slices.Equal(p.calls, want) {
			t.Errorf("%s: calls %q, want %q; whole %v, %v", what, p.calls, want, got, err)
		}
	}
	look("nothing runs", true)
	p.devices["veth1"] = true
	look("the container starts", true, "release veth1", "connect c1/eth0")
	look("again", true)
	p.devices["c1-eth1"] = true
	look("an adapter is plugged", true, "release c1-eth1", "connect c1/eth1")
	delete(p.devices, "c1-eth1")
	look("it is unplugged", true, "disconnect c1/eth1")
	p.devices["tap2"] = true
	look("the VM has a tap and no QEMU yet", false)
	p.qemus[vmID] = true
	look("it arrives", true, "release tap2", "incoming shop_vm1/eth0")
	look("it waits", true)
	delete(p.devices, "tap2")
	delete(p.qemus, vmID)
	look("the move is given up", true, "disconnect shop_vm1/eth0")
	p.devices["tap2"], p.qemus[vmID] = true, false
	look("it starts", true, "release tap2", "connect shop_vm1/eth0")

	f = &Follower{Agent: p, Host: p, Instances: f.Instances, Warn: f.Warn} // is started anew
	look("what is there stays", true)
	delete(p.devices, "veth1")
	look("what was found goes too", true, "disconnect c1/eth0")
	if len(warned) > 0 {
		t.Errorf("warned: %q", warned)
	}

	p.devices["veth1"], p.refuse = true, errors.New("no port group web")
	for range 3 {
		if _, err := f.Sync(t.Context()); err == nil {
			t.Error("a refusal is no error")
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "c1") || !strings.Contains(warned[0], "no port group web") {
		t.Errorf("warned %q", warned)
	}
}

func TestQEMUIsFoundByItsUUID(t *testing.T) {
	proc := t.TempDir()
	for pid, line := range map[string]string{"1": "init",
		"20": "qemu-system-x86_64\x00-uuid\x00" + vmID + "\x00-incoming\x00defer\x00",
		"21": "qemu-system-x86_64\x00-uuid\x00" + containerID + "\x00", "22": "grep\x00-uuid\x00"} {
		dir := filepath.Join(proc, pid)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "cmdline"), []byte(line),
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for uuid, want := range map[string][2]bool{vmID: {true, true}, containerID: {true, false}, "": {false, false},
		strings.Replace(vmID, "33", "34", 1): {false, false}} {
		if runs, incoming := (System{Proc: proc}).QEMU(uuid); runs != want[0] || incoming != want[1] {
			t.Errorf("%q: runs %v, incoming %v, want %v", uuid, runs, incoming, want)
		}
	}
}
