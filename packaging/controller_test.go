package packaging

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func controllerDeb(dir, version string) string {
	return filepath.Join(dir, "heddle-controller_"+version+"_amd64.deb")
}

func TestTheControllersPackage(t *testing.T) {
	files := map[string]string{}
	for line := range strings.Lines(output(t, "dpkg-deb", "-c", controllerDeb(packages(t), newVersion))) {
		f := strings.Fields(line)
		files[strings.TrimPrefix(f[5], ".")] = f[0] + " " + f[1]
	}
	for path, mode := range map[string]string{
		"/usr/bin/heddle-controller":                                  "-rwxr-xr-x",
		"/usr/bin/heddle-vsphere":                                     "-rwxr-xr-x",
		"/etc/default/heddle-controller":                              "-rw-r--r--",
		"/usr/lib/systemd/system/heddle-controller.service":           "-rw-r--r--",
		"/usr/share/bash-completion/completions/heddle-controller":    "-rw-r--r--",
		"/usr/share/zsh/vendor-completions/_heddle-controller":        "-rw-r--r--",
		"/usr/share/fish/vendor_completions.d/heddle-controller.fish": "-rw-r--r--",
		"/usr/share/man/man1/heddle-controller.1.gz":                  "-rw-r--r--",
		"/usr/share/doc/heddle-controller/copyright":                  "-rw-r--r--",
		"/usr/share/doc/heddle-controller/changelog.gz":               "-rw-r--r--",
		"/usr/share/doc/heddle-controller/three-hosts.md":             "-rw-r--r--",
		"/usr/share/doc/heddle-controller/several-controllers.md":     "-rw-r--r--",
		"/usr/share/doc/heddle-controller/access.md":                  "-rw-r--r--",
		"/usr/share/heddle-controller/grafana/heddle-controller.json": "-rw-r--r--",

		"/usr/share/heddle-controller/prometheus/controller-alerts.yaml": "-rw-r--r--",
	} {
		if got := files[path]; got != mode+" root/root" {
			t.Errorf("%s: %q, want %s root/root", path, got, mode)
		}
	}
	if _, ok := files["/usr/bin/heddle"]; ok {
		t.Error("the package has the host's program")
	}
	for path := range contents(t) {
		if strings.Contains(path, "heddle-controller") {
			t.Errorf("the host's package has the controller's %s", path)
		}
	}
	info := output(t, "dpkg-deb", "-I", controllerDeb(packages(t), newVersion), "conffiles")
	if strings.TrimSpace(info) != "/etc/default/heddle-controller" {
		t.Errorf("configuration files: %q", info)
	}
}

// The controller from its installation to its purge: it runs as its own user without a capability, root's commands
// reach it, an upgrade keeps its cluster, and a purge leaves nothing.
func TestTheControllerIsInstalledAndPurged(t *testing.T) {
	t.Parallel()
	m := boot(t, packages(t))
	m.sh("ip link set lo up")
	for _, name := range []string{"heddle", "heddle-controller"} {
		m.sh("dpkg --force-depends -i /run/packages/" + name + "_" + oldVersion + "_amd64.deb")
	}
	active := func() bool {
		state, _ := m.try("systemctl", "is-active", "heddle-controller.service")
		return strings.TrimSpace(state) == "active"
	}
	m.await("the controller is active", active)
	m.sh("heddle host list && heddle host token >/dev/null")
	pid := strings.TrimSpace(m.must("systemctl", "show", "--value", "--property=MainPID", "heddle-controller.service"))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%s/root/proc/%s/status", m.pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "Seccomp:\t2",
		"NoNewPrivs:\t1"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("the process has not %q:\n%s", want, status)
		}
	}
	got := m.sh("stat -c '%U %a' /var/lib/heddle-controller /run/heddle-controller /run/heddle-controller/api.sock")
	const own = "heddle-controller "
	if want := own + "700\n" + own + "755\n" + own + "600\n"; got != want {
		t.Errorf("directories and socket are\n%s\nwant\n%s", got, want)
	}
	said := m.sh("heddle-controller --version; heddle version")
	if lines := strings.Split(strings.TrimSpace(said), "\n"); len(lines) != 2 ||
		strings.TrimPrefix(lines[0], "heddle-controller ") != strings.TrimPrefix(lines[1], "heddle ") {
		t.Errorf("the programs' versions are\n%s", said)
	}

	m.sh("cat /var/lib/heddle-controller/id >/run/id; sha256sum /var/lib/heddle-controller/secret >/run/secret")
	m.sh("dpkg --force-depends -i /run/packages/heddle-controller_" + newVersion + "_amd64.deb")
	m.await("the controller is active after the upgrade", active)
	m.sh("sha256sum --check --quiet /run/secret && cmp /run/id /var/lib/heddle-controller/id && heddle host list")
	m.sh("systemctl stop heddle-controller.service")
	if out, err := m.try("heddle", "host", "list"); err == nil || !strings.Contains(out, "no controller answers") {
		t.Errorf("after the stop: %v, %s", err, out)
	}
	m.sh("systemctl start heddle-controller.service && heddle host list && dpkg --remove heddle-controller")
	m.sh("[ -e /var/lib/heddle-controller/secret ] && [ -e /etc/default/heddle-controller ]\n" +
		"[ ! -e /run/heddle-controller ]")
	m.sh("dpkg --purge heddle-controller")
	left := m.sh("ls -d /var/lib/heddle-controller /etc/default/heddle-controller /run/heddle-controller 2>/dev/null " +
		"|| true; getent passwd heddle-controller || true")
	if left != "" {
		t.Errorf("left after the purge:\n%s", left)
	}
	if log := m.sh("cat /run/heddle-controller.log"); strings.Contains(log, "level=ERROR") {
		t.Errorf("the controller logged faults:\n%s", log)
	}
}

func TestTheSameSourceMakesTheSamePackages(t *testing.T) {
	first, dir := packages(t), t.TempDir() // first of all, because it skips the test without root
	cmd := exec.Command("../scripts/deb", dir)
	cmd.Env = append(os.Environ(), "VERSION="+newVersion)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sum := func(path string) string { return strings.Fields(output(t, "sha256sum", path))[0] }
	for name, path := range map[string]func(string, string) string{"heddle": deb, "heddle-controller": controllerDeb} {
		t.Run(name, func(t *testing.T) {
			if sum(path(dir, newVersion)) != sum(path(first, newVersion)) {
				t.Error("two packages of one source differ")
			}
		})
	}
}

// What a controller can take of the machine's memory is bounded, whatever it is asked.
func TestS136_TheControllersUnitBoundsItsMemory(t *testing.T) {
	text, err := os.ReadFile("controller/heddle-controller.service")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\nMemoryMax=") {
		t.Error("the unit has no MemoryMax")
	}
}
