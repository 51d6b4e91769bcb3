package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/leaks"
	"heddle/internal/test/testkit/realhost"
)

// racks is the lab two-racks, built by the real program.
type racks struct {
	t      *testing.T
	heddle string
	dir    string // the run directory
	path   string // PATH with both programs
	name   string
}

func newRacks(t *testing.T) *racks {
	t.Helper()
	testkit.Root(t)
	leaks.Watch(t)
	testkit.Weigh(t, 2)
	// Names of unix sockets have 108 bytes at the most.
	dir, err := os.MkdirTemp("/tmp", "hr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	heddle, controller := realhost.Programs(t)
	bin := t.TempDir()
	if err := os.Symlink(controller, filepath.Join(bin, "heddle-controller")); err != nil {
		t.Fatal(err)
	}
	r := &racks{t: t, heddle: heddle, dir: dir, path: bin + ":" + os.Getenv("PATH"),
		name: "r" + strconv.Itoa(os.Getpid()%100000)}
	t.Cleanup(func() {
		if out, err := r.run("lab", "down", r.name); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	if out, err := r.run("lab", "up", "two-racks", "--name", r.name); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

func (r *racks) run(args ...string) (string, error) {
	cmd := exec.Command(r.heddle, args...)
	cmd.Env = append(os.Environ(), "PATH="+r.path, "HEDDLE_RUN_DIR="+r.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// in runs a command in a node of the lab.
func (r *racks) in(node string, command ...string) (string, error) {
	return r.run(append([]string{"lab", "exec", r.name, node}, command...)...)
}

// controller asks a controller of the lab.
func (r *racks) controller(name string) *api.Fleet {
	return api.NewFleet(r.controllerSocket(name))
}

// await waits until look finds nothing missing.
func (r *racks) await(what string, look func() error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), realhost.Patience)
	defer cancel()
	for {
		missing := look()
		if missing == nil {
			return
		}
		select {
		case <-ctx.Done():
			r.t.Fatalf("%s: %v", what, missing)
		case <-time.After(realhost.Poll):
		}
	}
}

// up returns what is missing until a controller shows all hosts up.
func (r *racks) up(controller string) error {
	list, err := r.controller(controller).Hosts(r.t.Context())
	if err != nil {
		return err
	}
	if len(list.Hosts) != 4 {
		return fmt.Errorf("%d hosts", len(list.Hosts))
	}
	for _, h := range list.Hosts {
		if h.State != api.HostUp {
			return fmt.Errorf("host %s is %s: %v", h.Name, h.State, h.Problems)
		}
	}
	return nil
}

// ping returns what is missing until a VM answers another.
func (r *racks) ping(from, to string) error {
	out, err := r.in(from, "ping", "-c", "1", "-W", "1", to)
	if err != nil {
		return fmt.Errorf("%s to %s: %w: %s", from, to, err, out)
	}
	return nil
}

// kill ends a controller.
func (r *racks) kill(controller string) {
	r.t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, line := range lines {
		words, err := os.ReadFile(line)
		if err != nil || !bytes.Contains(words, []byte("--socket\x00"+r.controllerSocket(controller)+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		return
	}
	r.t.Fatalf("controller %s does not run", controller)
}

// The lab two-racks: four hosts in two racks, twelve VMs, three controllers, all real processes. A controller is
// killed, and a physical switch fails; the definition can be changed, and the VMs reach each other.
func TestS103_TwoRacksGoOnWithoutAControllerAndASwitch(t *testing.T) {
	testkit.Long(t, "builds a lab of four hosts, twelve VMs and three controllers")
	t.Parallel()
	testkit.Tool(t, "ping")
	r := newRacks(t)
	out, err := r.run("lab", "list", "-o", "json")
	var list struct{ Labs []lab.Record }
	if err := errors.Join(err, json.Unmarshal([]byte(out), &list)); err != nil || len(list.Labs) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	kinds := map[lab.NodeKind]int{}
	for _, n := range list.Labs[0].Nodes {
		kinds[n.Kind]++
	}
	if kinds[lab.NodeHost] != 4 || kinds[lab.NodeVM] != 12 || kinds[lab.NodeController] != 3 ||
		kinds[lab.NodeSwitch] != 2 {
		t.Errorf("the lab consists of %v", kinds)
	}
	for _, name := range []string{"ctl1", "ctl2", "ctl3"} {
		r.await(name+" shows all hosts", func() error { return r.up(name) })
	}
	for _, way := range [][2]string{{"web1", "10.10.0.8"}, {"web5", "10.10.0.2"}, {"db4", "10.10.1.1"}} {
		r.await("VMs of a port group reach each other", func() error { return r.ping(way[0], way[1]) })
	}

	r.kill("ctl1")
	for _, name := range []string{"ctl2", "ctl3"} {
		r.await(name+" has all hosts without the first controller", func() error { return r.up(name) })
	}
	text, err := r.in("ctl2", "heddle", "--controller", r.controllerSocket("ctl2"), "definition", "show")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	changed := strings.Replace(text, "access: 10", "access: 30", 1)
	if changed == text {
		t.Fatalf("the definition has no VLAN 10: %s", text)
	}
	// Until the two that are left have a leader, a change is refused.
	r.await("the two controllers that are left take a change", func() error {
		defined, err := r.controller("ctl2").Define(t.Context(), api.Define{File: "two-racks.yaml", Content: changed,
			Wait: realhost.Patience})
		if err == nil && len(defined.Waiting) > 0 {
			t.Fatalf("hosts do not have the change active: %+v", defined.Waiting)
		}
		return err
	})
	r.await("VMs reach each other in the other VLAN", func() error { return r.ping("web1", "10.10.0.8") })

	if out, err := r.in("tor-a", "ip", "link", "set", "esx1-eno1", "down"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := r.in("tor-a", "ip", "link", "set", "esx4-eno1", "down"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, vm := range []string{"web1", "web2"} {
		r.await("VMs use the other physical switch", func() error { return r.ping(vm, "10.10.0.8") })
	}
}

func (r *racks) controllerSocket(name string) string {
	return filepath.Join(r.dir, "lab", r.name, "controller", name, "api.sock")
}
