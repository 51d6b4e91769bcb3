package packaging

import (
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// What a host list or a log says can be compared with what dpkg says.
func TestS181_TheProgramsSayTheVersionOfTheirPackage(t *testing.T) {
	for name, programs := range map[string][]string{
		"heddle": {"heddle"}, "heddle-controller": {"heddle-controller", "heddle-vsphere"},
	} {
		file := filepath.Join(packages(t), name+"_"+newVersion+"_amd64.deb")
		version := strings.TrimSpace(output(t, "dpkg-deb", "--field", file, "Version"))
		root := t.TempDir()
		output(t, "dpkg-deb", "--extract", file, root)
		for _, program := range programs {
			said := strings.Fields(output(t, filepath.Join(root, "usr/bin", program), "--version"))
			if version != newVersion || len(said) < 2 || said[1] != version && (len(said) < 3 || said[2] != version) {
				t.Errorf("%s of the package %s says %q", program, version, said)
			}
		}
	}
}

// Debian's own check of packages finds nothing that is not overridden with a reason.
func TestDebianFindsNoFaultInThePackages(t *testing.T) {
	testkit.Tool(t, "lintian")
	for _, name := range []string{"heddle", "heddle-controller"} {
		file := filepath.Join(packages(t), name+"_"+newVersion+"_amd64.deb")
		for line := range strings.Lines(output(t, "lintian", "--allow-root", "--fail-on", "none", file)) {
			if strings.HasPrefix(line, "E: ") || strings.HasPrefix(line, "W: ") {
				t.Error(strings.TrimSpace(line))
			}
		}
	}
}
