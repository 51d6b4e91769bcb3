package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// typed is a command that a page shows, and the output that it shows for it.
type typed struct {
	// where is the machine that its prompt names; "" where there is one machine only.
	where   string
	command string
	want    []string
	// numbers says that the page marks the numbers of the output as those of one run.
	numbers bool
}

var (
	console = regexp.MustCompile("(?m)((?:^<!-- output: numbers vary -->\n)?)^```console\n((?s:.*?))^```$")
	// varies is what differs from run to run in any output: times of day, what a ping took, MAC addresses.
	varies = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?|time[= ][\d.]+ ?ms|[\d.]+(/[\d.]+){3} ms|` +
		`[0-9a-f]{2}(:[0-9a-f]{2}){5}`)
	number = regexp.MustCompile(`\b\d+\b`)
	prompt = regexp.MustCompile(`^([\w-]*)# (.*)$`)
)

// consoles reads the commands of a page's console blocks and what stands below each.
func consoles(text string) []typed {
	var all []typed
	for _, m := range console.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(m[2]) {
			line = strings.TrimRight(line, "\n")
			if p := prompt.FindStringSubmatch(line); p != nil {
				all = append(all, typed{where: p[1], command: p[2], numbers: m[1] != ""})
			} else if len(all) > 0 {
				last := &all[len(all)-1]
				last.want = append(last.want, line)
			}
		}
	}
	return all
}

// plain is a line without what may differ: how wide the columns are, times, addresses, and, where a page says so,
// numbers that stand for themselves.
func (s typed) plain(line string) string {
	line = varies.ReplaceAllString(strings.Join(strings.Fields(line), " "), "~")
	if s.numbers {
		line = number.ReplaceAllString(line, "0")
	}
	return line
}

// differs says where the output is not what the page shows, "" where it is. A line of "…" stands for any lines.
func (s typed) differs(output string) string {
	got := strings.Split(strings.TrimRight(output, "\n"), "\n")
	anywhere := false
	for _, want := range s.want {
		if want == "…" {
			anywhere = true
			continue
		}
		at := 0
		for anywhere && at < len(got) && s.plain(got[at]) != s.plain(want) {
			at++
		}
		if at >= len(got) || s.plain(got[at]) != s.plain(want) {
			return "the page has the line\n" + want + "\nand the program prints\n" + output
		}
		got, anywhere = got[at+1:], false
	}
	if !anywhere && strings.Join(got, "") != "" {
		return "the page lacks the end of\n" + output
	}
	return ""
}

// TestTheTutorialShowsWhatItsCommandsPrint runs the tutorial as a reader would, from the first command to the last.
func TestTheTutorialShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Root(t)
	testkit.Tool(t, "ip", "ping", "ethtool")
	commands := consoles(page(t, "docs/tutorial/first-lab.md"))
	if len(commands) < 10 {
		t.Fatalf("the tutorial has %d commands", len(commands))
	}
	env := append(os.Environ(), "HEDDLE_RUN_DIR="+filepath.Join(shortDir(t), "run"))
	t.Cleanup(func() { // where the tutorial did not come to its end
		down := exec.Command("heddle", "lab", "down", "placement-paths")
		down.Env = env
		_ = down.Run()
	})
	for _, s := range commands {
		words := strings.Fields(s.command)
		if words[0] != "heddle" {
			t.Fatalf("%s: no command of heddle", s.command)
		}
		c := exec.Command("heddle", words[1:]...)
		c.Env = env
		out, err := c.CombinedOutput()
		if why := s.differs(string(out)); why != "" {
			t.Fatalf("%s: %v: %s", s.command, err, why)
		}
	}
}

// TestTheAttachPageShowsWhatItsCommandsPrint: a VM's and a container's port, as the page connects them. Tables of ports
// in other pages have the columns that there are.
func TestTheAttachPageShowsWhatItsCommandsPrint(t *testing.T) {
	h := newHost(t)
	text := page(t, "docs/how-to/attach/attach.md")
	_, config, _ := strings.Cut(text, "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	h.ip("link add eno1 type veth peer name wire")
	h.ip("link set wire up")
	h.start("--config", h.file("heddle.yaml", config))
	vm := h.guest("tap0", "02:00:00:00:01:01", "192.0.2.1/24")
	h.guest("veth-c1", "02:00:00:00:01:02", "192.0.2.2/24")
	for _, p := range [][2]string{{"vm1/eth0", "tap0"}, {"c1/eth0", "veth-c1"}} {
		port, device := p[0], p[1]
		h.ip("link set " + device + " up")
		h.must("port", "connect", port, "--switch", "lab", "--port-group", "web", "--device", device)
	}
	for _, port := range []string{"vm1/eth0", "c1/eth0"} {
		h.awaitPort(port, api.Up)
	}
	h.await("the uplink is used", func() bool {
		return strings.Count(h.must("port", "list", "--uplink", "uplink1"), "uplink1") == 2
	})
	if !pings(vm, "192.0.2.2") {
		t.Error("the VM does not reach the container")
	}
	for _, s := range consoles(text) {
		if why := s.differs(h.must(strings.Fields(s.command)[1:]...)); why != "" {
			t.Errorf("%s: %s", s.command, why)
		}
	}
	h.columns("port list", "attach/qemu", "attach/libvirt", "attach/proxmox", "attach/lxc", "one-host/storms",
		"one-host/teaming")
	h.columns("lag list", "one-host/lacp")
}

// columns compares the tables in how-tos with the columns that the commands print.
func (h *host) columns(command string, pages ...string) {
	h.t.Helper()
	head, _, _ := strings.Cut(h.must(strings.Fields(command)...), "\n")
	for _, name := range pages {
		found := false
		for _, s := range consoles(page(h.t, "docs/how-to/"+name+".md")) {
			if s.command == "heddle "+command {
				found = true
				if s.plain(s.want[0]) != s.plain(head) {
					h.t.Errorf("%s.md has a table with the columns\n%s\nand the program's are\n%s", name, s.want[0],
						head)
				}
			}
		}
		if !found {
			h.t.Errorf("%s.md shows nothing of heddle %s", name, command)
		}
	}
}

func TestDiffers(t *testing.T) {
	const output = "NAME  N\na     1 at 2026-01-02 03:04:05\nb    22 of 02:00:00:00:00:01\n"
	for name, c := range map[string]struct {
		page string
		same bool
	}{
		"equal":           {"# x\nNAME N\na 1 at 2027-11-12 13:14:15.678\nb 22 of 02:aa:00:00:00:01\n", true},
		"another number":  {"# x\nNAME N\na 2 at 2027-11-12 13:14:15.678\nb 22 of 02:aa:00:00:00:01\n", false},
		"another heading": {"# x\nNAME M\n…\n", false},
		"the first line":  {"# x\nNAME N\n…\n", true},
		"a line within":   {"# x\n…\na 1 at 2027-11-12 13:14:15\n…\n", true},
		"no such line":    {"# x\n…\nc 1\n…\n", false},
		"the end lacks":   {"# x\nNAME N\n", false},
		"more than there": {"# x\n…\nb 22 of 02:00:00:00:00:01\nc\n", false},
		"wrong order":     {"# x\n…\nb 22 of 02:00:00:00:00:01\n…\nNAME N\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := consoles("```console\n" + c.page + "```\n")[0]
			if why := s.differs(output); (why == "") != c.same {
				t.Errorf("%q", why)
			}
		})
	}
	s := consoles("<!-- output: numbers vary -->\n```console\n# x\nNAME N\na 7 at 2026-01-02 03:04:05\n…\n```\n")[0]
	if why := s.differs(output); why != "" {
		t.Errorf("numbers of a block where they vary: %s", why)
	}
}

// page is a page of the repository.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
