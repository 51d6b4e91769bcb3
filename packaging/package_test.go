package packaging

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"heddle/internal/test/testkit"
)

// Two versions of the package, made once for all tests; the old one, which most tests install, with a quicker
// compression.
const (
	oldVersion = "0.0.1"
	newVersion = "0.0.2"
)

var made = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "heddle-packages-")
	if err != nil {
		return "", err
	}
	for _, v := range [][]string{{"VERSION=" + oldVersion, "COMPRESSION=gzip"}, {"VERSION=" + newVersion}} {
		cmd := exec.Command("../scripts/deb", dir)
		cmd.Env = append(os.Environ(), v...)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return dir, err
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	if wasMade { // made would make them
		if dir, _ := made(); dir != "" {
			os.RemoveAll(dir)
		}
	}
	os.Exit(status)
}

// wasMade keeps TestMain from making packages that no test asked for.
var wasMade bool

// packages is the directory with both versions.
func packages(t *testing.T) string {
	t.Helper()
	testkit.Root(t) // installing needs it, and making takes longer than a test without root may
	testkit.Tool(t, "dpkg", "xz", "gzip")
	wasMade = true
	dir, err := made()
	if err != nil {
		t.Fatalf("make the packages: %v", err)
	}
	return dir
}

func deb(dir, version string) string {
	return filepath.Join(dir, "heddle_"+version+"_amd64.deb")
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// contents are the package's files, with their permissions.
func contents(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for line := range strings.Lines(output(t, "dpkg-deb", "-c", deb(packages(t), newVersion))) {
		f := strings.Fields(line)
		files[strings.TrimPrefix(f[5], ".")] = f[0] + " " + f[1]
	}
	return files
}

func TestThePackageHasEverythingAndOnlyRootMayWriteIt(t *testing.T) {
	files := contents(t)
	for path, mode := range map[string]string{
		"/usr/bin/heddle": "-rwxr-xr-x", "/usr/share/heddle/heddle.yaml": "-rw-r--r--",
		"/usr/lib/cni/heddle-cni":                               "lrwxrwxrwx",
		"/usr/lib/systemd/system/heddle.service":                "-rw-r--r--",
		"/usr/lib/systemd/system/run-heddle-bpf.mount":          "-rw-r--r--",
		"/usr/share/bash-completion/completions/heddle":         "-rw-r--r--",
		"/usr/share/zsh/vendor-completions/_heddle":             "-rw-r--r--",
		"/usr/share/fish/vendor_completions.d/heddle.fish":      "-rw-r--r--",
		"/usr/share/man/man1/heddle.1.gz":                       "-rw-r--r--",
		"/usr/share/man/man1/heddle-port-connect.1.gz":          "-rw-r--r--",
		"/usr/share/man/man5/heddle.yaml.5.gz":                  "-rw-r--r--",
		"/usr/share/doc/heddle/copyright":                       "-rw-r--r--",
		"/usr/share/doc/heddle/changelog.gz":                    "-rw-r--r--",
		"/usr/share/doc/heddle/docs/reference/agent.md":         "-rw-r--r--",
		"/usr/share/doc/heddle/docs/reference/configuration.md": "-rw-r--r--",
		"/usr/share/doc/heddle/docs/how-to/attach/libvirt.md":   "-rw-r--r--",
		"/usr/share/doc/heddle/docs/pictures/operator.svg":      "-rw-r--r--",
		"/usr/share/heddle/ansible/playbook.yaml":               "-rw-r--r--",
		"/usr/share/heddle/gitops/heddle-pull":                  "-rwxr-xr-x",
		"/usr/share/heddle/init/heddle.openrc":                  "-rwxr-xr-x",
		"/usr/share/heddle/init/runit/run":                      "-rwxr-xr-x",
	} {
		switch got, ok := files[path]; {
		case !ok:
			t.Errorf("%s is not in the package", path)
		case got[0] != 'l' && got != mode+" root/root":
			t.Errorf("%s: %s, want %s root/root", path, got, mode)
		}
	}
	for path, mode := range files {
		if mode[0] != 'l' && (mode[5] == 'w' || mode[8] == 'w' || !strings.HasSuffix(mode, " root/root")) {
			t.Errorf("%s: %s", path, mode)
		}
	}
	// A file that everybody edits, and that changes from version to version, would have each upgrade ask.
	if out := output(t, "dpkg-deb", "-I", deb(packages(t), newVersion)); strings.Contains(out, " conffiles ") {
		t.Errorf("the package has configuration files:\n%s", out)
	}
}

// earlyNetwork are units of a Debian host with ifupdown and cloud-init, which has its network before sysinit.target,
// and a boot that starts them beside the agent.
func earlyNetwork() map[string]string {
	const early = "[Unit]\nDefaultDependencies=no\n%s\n[Service]\nType=oneshot\nExecStart=/bin/true\n" +
		"RemainAfterExit=yes\n"
	return map[string]string{
		"networking.service": fmt.Sprintf(early, "After=local-fs.target network-pre.target systemd-sysctl.service "+
			"systemd-modules-load.service\nBefore=network.target shutdown.target\nConflicts=shutdown.target\n"+
			"Wants=network.target"),
		"cloud-init-local.service": fmt.Sprintf(early, "Wants=network-pre.target\nAfter=systemd-remount-fs.service\n"+
			"Before=network-pre.target sysinit.target shutdown.target\nConflicts=shutdown.target"),
		"cloud-init.service": fmt.Sprintf(early, "Wants=cloud-init-local.service\nAfter=cloud-init-local.service "+
			"networking.service\nBefore=network-online.target sysinit.target "+
			"shutdown.target\nConflicts=shutdown.target"),
		"whole-boot.target": "[Unit]\nRequires=sysinit.target networking.service cloud-init.service heddle.service\n" +
			"After=sysinit.target networking.service cloud-init.service heddle.service\n",
	}
}

// A cycle of orderings has systemd leave a unit out, which may be the one that makes the host's network.
func TestTheUnitsAreValid(t *testing.T) {
	testkit.Root(t)
	testkit.Tool(t, "systemd-analyze")
	dir := t.TempDir()
	verify := []string{"verify", "--man=no"}
	for _, pattern := range []string{"systemd/*", "controller/*.service", "gitops/*.service", "gitops/*.timer"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		for _, file := range files {
			unit, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// The verifier wants the program to be there.
			unit = regexp.MustCompile(`(?m)^Exec(Start|Reload)=/usr/\S+`).ReplaceAll(unit, []byte("Exec$1=/bin/true"))
			path := filepath.Join(dir, filepath.Base(file))
			if err := os.WriteFile(path, unit, 0o644); err != nil {
				t.Fatal(err)
			}
			verify = append(verify, path)
		}
	}
	for name, unit := range earlyNetwork() {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
			t.Fatal(err)
		}
		verify = append(verify, path)
	}
	if out := output(t, "systemd-analyze", verify...); strings.Contains(out, "heddle") {
		t.Errorf("systemd finds faults:\n%s", out)
	}
}
