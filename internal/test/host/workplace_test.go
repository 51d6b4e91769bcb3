package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// workplace is the machine of a controller, with a directory in which somebody types the commands of a page.
type workplace struct {
	t          *testing.T
	dir        string
	ns         *netns.NS
	controller *realhost.Controller
}

// workedDefinition is what the controllers of the pages of Ansible and of backups define at first.
const workedDefinition = `switches:
  - name: dvs
    uplinks: [{name: uplink1}, {name: uplink2}]
    portGroups:
      - {name: web, vlan: {access: 10}, teaming: {active: [uplink1], standby: [uplink2]}}
      - {name: db, vlan: {access: 20}}
templates:
  - name: lab
    labels: {site: lab}
    switches:
      - {name: dvs, uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}]}
`

// newWorkplace has a controller that runs, with workedDefinition.
func newWorkplace(t *testing.T) *workplace {
	t.Helper()
	testkit.Root(t)
	w := &workplace{t: t, dir: t.TempDir(), ns: testkit.NS(t, "controller1")}
	w.controller = realhost.NewController(t, w.ns, "127.0.0.1:7411")
	w.controller.Start()
	w.controller.Define(workedDefinition)
	return w
}

func (w *workplace) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// typed runs a command in a shell there and gives what it prints.
func (w *workplace) typed(command string) string {
	w.t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "HEDDLE_CONTROLLER="+w.controller.Socket(), "ANSIBLE_NOCOLOR=1",
		"ANSIBLE_LOCALHOST_WARNING=False", "ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := w.ns.Start(cmd); err != nil {
		w.t.Fatal(err)
	}
	_ = cmd.Wait() // some commands are refused on purpose, and what they print is compared
	return strings.ReplaceAll(out.String(), w.controller.Socket(), "/run/heddle-controller/api.sock")
}

// shows runs the commands of a page, which print what it says.
func (w *workplace) shows(text string, least int) {
	w.t.Helper()
	commands := consoles(text)
	if len(commands) < least {
		w.t.Fatalf("the page has %d commands", len(commands))
	}
	for _, s := range commands {
		if why := s.differs(w.typed(s.command)); why != "" {
			w.t.Fatalf("# %s: %s", s.command, why)
		}
	}
}

// fenced are the blocks of a page in a language.
func fenced(text, language string) (blocks []string) {
	for _, part := range strings.Split(text, "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

// TestThePageOfAnsibleShowsWhatItsCommandsPrint plays the page's playbook with the real program: what was exported
// changes nothing, a dry run only tells, and a second run changes nothing.
func TestThePageOfAnsibleShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Long(t, "plays a playbook several times")
	testkit.Tool(t, "ansible-playbook", "python3")
	text := page(t, "docs/how-to/many-hosts/ansible.md")
	blocks := fenced(text, "yml")
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of YAML", len(blocks))
	}
	w := newWorkplace(t)
	w.write("fleet.yaml", blocks[0])
	w.write("project.yaml", blocks[1])
	w.shows(text, 9)
	w.decodedAndEncoded("terraform.yaml")
	w.hostileTexts()
}

// decodedAndEncoded checks that what another YAML library makes of an export, with its port groups by name, is the same
// definition. Terraform's yamldecode and yamlencode do that; no package has Terraform.
func (w *workplace) decodedAndEncoded(file string) {
	w.t.Helper()
	const script = `import yaml
read = yaml.safe_load(open("%s"))
print(*sorted(s + "/" + g for s, switch in read["switches"].items() for g in switch["portGroups"]))
yaml.safe_dump(read, open("again.yaml", "w"))
`
	w.write("again.py", fmt.Sprintf(script, file))
	out := w.typed("python3 again.py && heddle definition apply -f again.yaml")
	if !strings.Contains(out, "dvs/db") || !strings.Contains(out, "dvs/web") ||
		!strings.Contains(out, "nothing changes") {
		w.t.Errorf("the export as another library writes it: %s", out)
	}
}

// hostileTexts checks that what Ansible would take for a template goes through a play as it is, and is not run.
func (w *workplace) hostileTexts() {
	w.t.Helper()
	const hostile = "{{ lookup('pipe', 'touch played') }} {% raw %} {# x #}"
	text := strings.Replace(workedDefinition, "templates:", "      - {name: vms, binding: static, ports: {number: "+
		"1}}\ntemplates:", 1)
	w.controller.Define(text)
	id := regexp.MustCompile(`"port": "(\d+)"`).FindStringSubmatch(w.typed("heddle port static list -o json"))
	if id == nil {
		w.t.Fatalf("there is no static port: %s", w.typed("heddle port static list -o json"))
	}
	w.controller.Define(text + "ports:\n  - {id: \"" + id[1] + "\", switch: dvs, portGroup: vms, description: \"" +
		hostile + "\"}\n")
	const play = "ansible-playbook -i localhost, fleet.yaml"
	if out := w.typed("heddle export ansible > definition.yaml && " + play); !strings.Contains(out, "changed=0") ||
		!strings.Contains(out, "failed=0") {
		w.t.Errorf("a description that looks like a template: %s", out)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "played")); err == nil {
		w.t.Error("a description was run as a template")
	}
	if out := w.typed("sed -i 's/!unsafe //' definition.yaml && " + play); strings.Contains(out, "changed=0") &&
		strings.Contains(out, "failed=0") {
		w.t.Errorf("without the tag it is the same: this test is void: %s", out)
	}
	if out := w.typed("heddle export ansible -o json"); !strings.Contains(out, "takes for a template") {
		w.t.Errorf("as JSON, which has no tags, it is exported: %s", out)
	}
}

// TestThePageOfBackupsShowsWhatItsCommandsPrint runs the page as a reader would: what it saves is compared, edited and
// brought back.
func TestThePageOfBackupsShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Tool(t, "sed", "grep")
	newWorkplace(t).shows(page(t, "docs/how-to/many-hosts/backup.md"), 11)
}
