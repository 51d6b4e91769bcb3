package host

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// fleet are two hosts whose network cards have different names, and a directory of what they shall be.
type fleet struct {
	t     *testing.T
	dir   string
	hosts []*host
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: shortDir(t)}
	for i, card := range []string{"eno1", "enp3s0f0"} {
		h := newHost(t)
		h.ip("link add " + card + " type veth peer name wire")
		h.ip("link set wire up")
		h.start("--config", h.file("heddle.yaml", "switches: []\n"))
		f.hosts = append(f.hosts, h)
		f.write(fmt.Sprintf("hosts/esx%d.env", i+1), "# the card\nuplink1="+card+"\n")
	}
	return f
}

func (f *fleet) write(path, text string) {
	f.t.Helper()
	path = filepath.Join(f.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// groups gives the port groups of the i-th host with their VLANs, and the versions that it has applied.
func (f *fleet) groups(i int) (string, int) {
	f.t.Helper()
	var b strings.Builder
	for line := range strings.Lines(f.hosts[i].must("port-group", "list")) {
		if w := strings.Fields(line); w[0] == "lab" {
			b.WriteString(w[1] + "=" + w[3] + " ")
		}
	}
	return strings.TrimSpace(b.String()), strings.Count(f.hosts[i].must("config", "history"), "\n") - 1
}

// want compares both hosts with the port groups that they should have.
func (f *fleet) want(what string, groups ...string) {
	f.t.Helper()
	for i, want := range groups {
		if got, _ := f.groups(i); got != want {
			f.t.Errorf("%s: host %d has port groups %q, want %q", what, i+1, got, want)
		}
	}
}

// pull runs the script of the timer on the i-th host.
func (f *fleet) pull(i int) (string, error) {
	f.t.Helper()
	h := f.hosts[i]
	script, err := filepath.Abs("../../../packaging/gitops/heddle-pull")
	if err != nil {
		f.t.Fatal(err)
	}
	c := exec.Command("sh", script, f.dir)
	c.Env = append(h.command().Env, "HEDDLE_FILE="+filepath.Join(h.dir, "heddle.yaml"),
		fmt.Sprintf("HEDDLE_PULL_HOST=esx%d", i+1))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := h.ns.Start(c); err != nil {
		f.t.Fatal(err)
	}
	err = c.Wait()
	return out.String(), err
}

const pulledSwitch = `switches:
  - name: lab
    uplinks: [{name: uplink1, device: "@uplink1@"}]
    portGroups: [{name: web, vlan: {access: 200}}]
`

// TestHostsFollowADirectory: each host has the same port groups on a card of its own, a second run does nothing, and
// what is not valid or lacks a value changes neither the host nor its file.
func TestHostsFollowADirectory(t *testing.T) {
	testkit.Long(t, "runs two hosts by one directory, again and again")
	f := newFleet(t)
	f.write("switch.yaml", pulledSwitch)
	for range 2 {
		for i := range f.hosts {
			if out, err := f.pull(i); err != nil {
				t.Fatalf("host %d: %v\n%s", i+1, err, out)
			}
		}
	}
	f.want("after two runs", "web=200", "web=200")
	for i, card := range []string{"eno1", "enp3s0f0"} {
		if _, versions := f.groups(i); versions != 2 {
			t.Errorf("host %d has %d versions, want that of the start and one", i+1, versions)
		}
		if out := f.hosts[i].must("uplink", "list"); !strings.Contains(out, card) {
			t.Errorf("host %d does not use its card:\n%s", i+1, out)
		}
	}
	file := filepath.Join(f.hosts[0].dir, "heddle.yaml")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, says string }{
		"a VLAN that does not exist": {strings.Replace(pulledSwitch, "200", "5000", 1), "not valid"},
		"a value that is missing": {strings.Replace(pulledSwitch, "@uplink1@", "@uplink9@", 1),
			"lacks a value for @uplink9@"},
	} {
		t.Run(name, func(t *testing.T) {
			f.write("switch.yaml", c.text)
			if out, err := f.pull(0); err == nil || !strings.Contains(out, c.says) {
				t.Errorf("%v, and it says:\n%s", err, out)
			}
			if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file was changed: %v\n%s", err, after)
			}
		})
	}
	f.want("after what is wrong", "web=200")
	if left, err := filepath.Glob(file + ".*"); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}

// play runs a playbook of packaging/ansible on both hosts, by local connections.
func (f *fleet) play(book string, args ...string) (string, error) {
	f.t.Helper()
	inventory := "[heddle]\n"
	for i, h := range f.hosts {
		inventory += fmt.Sprintf("esx%d ansible_connection=local ansible_python_interpreter=/usr/bin/python3 "+
			"heddle_file=%s heddle_agent=%s heddle_run=%s\n", i+1,
			filepath.Join(h.dir, "heddle.yaml"), h.name, filepath.Join(h.dir, "run"))
	}
	f.write("inventory.ini", inventory)
	extra := `{"heddle_become": false, "heddle_environment": {"HEDDLE_AGENT": "{{ heddle_agent }}", ` +
		`"HEDDLE_RUN_DIR": "{{ heddle_run }}", "PATH": "` + os.Getenv("PATH") + `"}}`
	c := exec.Command("ansible-playbook", append([]string{"-i", filepath.Join(f.dir, "inventory.ini"), "-e", extra,
		filepath.Join(f.dir, book)}, args...)...)
	c.Env = append(os.Environ(), "ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCALHOST_WARNING=False", "HOME="+f.dir)
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestHostsAreKeptEqualByAnsible plays packaging/ansible on two agents: it changes both, does nothing twice, stops at
// the first host where something is wrong and takes that back, and rolls back.
func TestHostsAreKeptEqualByAnsible(t *testing.T) {
	testkit.Long(t, "plays a playbook several times")
	testkit.Tool(t, "ansible-playbook", "python3")
	f := newFleet(t)
	for _, name := range []string{"playbook.yaml", "rollback.yaml", "templates/heddle.yaml.j2"} {
		f.write(name, page(t, "packaging/ansible/"+name))
	}
	for i, card := range []string{"eno1", "enp3s0f0"} {
		f.write(fmt.Sprintf("host_vars/esx%d.yaml", i+1), "heddle_uplinks: [{name: uplink1, device: "+card+"}]\n"+
			fmt.Sprintf("heddle_ports: [{name: vmk0, switch: lab, portGroup: web, role: host, "+
				"addresses: [192.0.2.%d/24]}]\n", i+1))
	}
	vlan := func(id string) {
		f.write("group_vars/heddle.yaml", "heddle_port_groups: [{name: web, vlan: {access: "+id+"}}]\n")
	}
	play := func(what string, ok bool, book string, args ...string) string {
		t.Helper()
		out, err := f.play(book, args...)
		if (err == nil) != ok {
			t.Fatalf("%s: %v\n%s", what, err, out)
		}
		return out
	}

	vlan("200")
	play("the first time", true, "playbook.yaml")
	f.want("the first time", "web=200", "web=200")
	if out := play("again", true, "playbook.yaml"); strings.Count(out, "changed=0") != 2 {
		t.Errorf("the same play changes something again:\n%s", out)
	}
	vlan("201")
	out := play("with --check", true, "playbook.yaml", "--check")
	if says := `"port vmk0 of port group lab/web changes vlan access 200`; strings.Count(out, says) != 2 {
		t.Errorf("it does not say for both hosts %s:\n%s", says, out)
	}
	f.want("with --check", "web=200", "web=200")

	// vmk0's way leads nowhere here, so that nobody can be asked: the change needs a confirmation.
	play("nobody answers", false, "playbook.yaml")
	f.want("nobody answers", "web=200", "web=200")
	play("with a confirmation", true, "playbook.yaml", "-e", "heddle_confirm_within=1m")
	f.want("with a confirmation", "web=201", "web=201")

	vlan("5000")
	play("a VLAN that does not exist", false, "playbook.yaml")
	f.want("a VLAN that does not exist", "web=201", "web=201")

	f.write("group_vars/heddle.yaml",
		"heddle_port_groups: [{name: web, vlan: {access: 201}}, {name: db, vlan: {access: 30}}]\n")
	f.write("host_vars/esx1.yaml", "heddle_uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno9}]\n"+
		"heddle_ports: [{name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}]\n")
	play("a card that does not exist", false, "playbook.yaml", "-e", "heddle_confirm_within=1m")
	f.want("a card that does not exist", "web=201", "web=201")
	if out, errs, status := f.hosts[0].heddle("config", "diff"); status != 0 {
		t.Errorf("the file of the first host is not what is applied:\n%s%s", out, errs)
	}

	// What is applied is version 5 now, as the rollback is one; 201 was version 3, and 200 version 2.
	play("back", true, "rollback.yaml", "--limit", "esx1", "-e", "heddle_version=2", "-e", "heddle_confirm_within=1m")
	f.want("back", "web=200", "web=201")
}
