package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// managing is a fleet in which a program moves VMs by the calls of the page for managers, with the page's own curl.
type managing struct {
	*fleet
	curl string            // the page's command
	port string            // the page's port, as JSON
	call map[string]string // by step, as in the page's table
	dir  string
}

// The page for managers is done as it says, by its own command and its own JSON: a VM moves and comes back, each step
// is repeated, a move is cancelled, and a step that does not fit is refused with the code that the page names.
func TestS100_ThePageForManagersMovesAVM(t *testing.T) {
	testkit.Long(t, "moves a VM several times; the package host does the page's steps on one host")
	t.Parallel()
	testkit.Tool(t, "curl")
	f := newFleet(t)
	f.controller.Start()
	for n := range f.hosts {
		f.controller.Join(f.hosts[n].Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	f.controller.Define(strings.NewReplacer("dvs", "lab", "{name: spare,", "{name: storage,").Replace(fleetText))
	m := &managing{fleet: f, dir: t.TempDir(), call: map[string]string{}}
	m.read()
	var asked struct {
		Port        struct{ Name, Device string }
		VM, Adapter string
	}
	if err := json.Unmarshal([]byte(m.port), &asked); err != nil {
		t.Fatal(err)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.guests[fmt.Sprintf("vm@%d", n)] = f.hosts[n].QuietlyIn(fmt.Sprintf("vm-%d", n), asked.Port.Device,
			fleetMAC(0, 7))
	}
	f.hosts[0].must("port", "connect", asked.Port.Name, "--switch", "lab", "--port-group", "web", "--device",
		asked.Port.Device, "--vm-uuid", asked.VM, "--adapter", asked.Adapter)
	f.hosts[0].Up(asked.Port.Name)

	m.hops(0, 1, asked.Port.Name)
	m.hops(1, 0, asked.Port.Name)
	m.takesBack(asked.Port.Name)
}

// read takes the commands from the page.
func (m *managing) read() {
	m.t.Helper()
	b, err := os.ReadFile("../../../docs/how-to/many-hosts/write-a-manager.md")
	if err != nil {
		m.t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| (\\w+) \\| \\w+ \\| `(\\w+/\\w+)`")
	for _, row := range row.FindAllStringSubmatch(string(b), -1) {
		m.call[row[1]] = row[2]
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(string(b))
	command := regexp.MustCompile(`(?m)^    curl (.*\\\n)*.*$`).FindString(string(b))
	if len(m.call) != 6 || block == nil || !strings.HasSuffix(command, "ConnectIncomingPort") {
		m.t.Fatalf("the page has the calls %v, the command %q", m.call, command)
	}
	m.port, m.curl = block[1], command
}

// calls makes the call of a step on a host, and gives the HTTP status and the answer.
func (m *managing) calls(n int, step, request string) (status, answer string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, "port.json"), []byte(request), 0o600); err != nil {
		m.t.Fatal(err)
	}
	call := strings.NewReplacer("/run/heddle/default.sock", filepath.Join(m.hosts[n].Dir, "run", "default.sock"),
		"PortService/ConnectIncomingPort", m.call[step]).Replace(m.curl)
	cmd := exec.Command("sh", "-c", call+` -sS -w '\n%{http_code}'`)
	cmd.Dir = m.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v: %s", call, err, out)
	}
	at := strings.LastIndexByte(string(out), '\n')
	return string(out[at+1:]), string(out[:at])
}

// does makes a call that works, twice: a call that is not answered may have been made.
func (m *managing) does(n int, step, request string) {
	m.t.Helper()
	for range 2 {
		if status, answer := m.calls(n, step, request); status != "200" {
			m.t.Fatalf("%s on host %d: %s %s", step, n, status, answer)
		}
	}
}

// hops moves the VM by the page's steps. It sends nothing: its manager says that it runs.
func (m *managing) hops(from, to int, port string) {
	m.t.Helper()
	name := fmt.Sprintf(`{"port": %q}`, port)
	m.does(to, "prepare", m.port)
	m.moves(to, port, in("copied"), "a copy is there")
	m.does(from, "copy", name)
	m.does(from, "silence", name)
	m.moves(to, port, func(p api.PortMove) bool { return p.Last }, "the last copy is there")
	if m.fleet.port(from, port).Wait == nil || m.fleet.port(to, port).Wait == nil {
		m.t.Error("a port speaks while its guest stands still")
	}
	m.does(to, "activate", name)
	m.speaks(to, port, from, to)
	m.moves(from, port, in("active"), "it knows that the guest runs elsewhere")
	m.does(from, "release", name)
	m.hasNoPort(from, port)
	m.speaks(to, port, to)
}

// takesBack prepares a move of the VM, which runs on the first host, and cancels it: all is as it was. What does not
// fit is refused.
func (m *managing) takesBack(port string) {
	m.t.Helper()
	name := fmt.Sprintf(`{"port": %q}`, port)
	status, answer := m.calls(0, "copy", name)
	if !strings.Contains(answer, `"code":"invalid_argument"`) || status == "200" {
		m.t.Errorf("a copy to nowhere: %s %s", status, answer)
	}
	m.does(1, "prepare", m.port)
	m.moves(1, port, in("copied"), "a copy is there")
	m.does(1, "cancel", name)
	m.hasNoPort(1, port)
	m.speaks(0, port, 0)
	status, answer = m.calls(1, "prepare", strings.Replace(m.port, `"storage"`, `"backup"`, 1))
	if status == "200" || !strings.Contains(answer, "backup") {
		m.t.Errorf("the guest needs what the target does not have: %s %s", status, answer)
	}
	m.hasNoPort(1, port)
}
