package packaging

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// purging runs "postrm purge" over directories of three agents, and one that no agent can have, with a program in place
// of heddle that ends with the given statuses for agent b. Everything that postrm removes lies in memory that goes with
// it. It is what postrm said, whether it succeeded, what heddle was asked, and what was left of the agents.
func purging(t *testing.T, dry, down int) (said string, asked, left []string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	standIn := `#!/bin/sh
echo "$*" >>` + dir + `/asked
case "$*" in
"down --dry-run --agent=b") echo "b speaks" >&2; exit ` + fmt.Sprint(dry) + ` ;;
*--agent=b) exit ` + fmt.Sprint(down) + ` ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "heddle"), []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("deb/postrm")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-ec", `
for d in /var/lib /run /etc; do mount -t tmpfs tmpfs $d; done
mkdir -p /var/lib/heddle/.removed /var/lib/heddle/a /var/lib/heddle/b '/var/lib/heddle/c d' /etc/heddle
mkdir -p /run/heddle/bpf/e /run/heddle/bpf/e.debug
cp "$1/heddle" /var/lib/heddle/.removed/heddle
status=0
sh "$2" purge || status=$?
ls /var/lib/heddle /run/heddle/bpf >"$1/left" 2>/dev/null || true
exit $status`, "sh", dir, script)
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return string(out), lines(t, dir, "asked"), lines(t, dir, "left"), err == nil
}

func lines(t *testing.T, dir, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// A purge goes on only when every agent has agreed, and only as far as agents are taken down: with any other status
// their switches, their state and the program that takes them down stay.
func TestS182_APurgeEndsAtTheFirstAgentThatFails(t *testing.T) {
	testkit.Root(t)
	testkit.Tool(t, "unshare")
	const question, order = "down --dry-run --agent=", "down --purge --yes --agent="
	for _, c := range []struct {
		dry, down int
		asked     []string
		says      string
	}{
		{0, 0, []string{question + "a", question + "b", question + "c d", question + "e", order + "a", order + "b",
			order + "c d", order + "e"}, ""},
		{1, 0, []string{question + "a", question + "b"}, "failed with status 1,"},
		{2, 0, []string{question + "a", question + "b"}, "A directory /var/lib/heddle/b that is no agent's"},
		{4, 0, []string{question + "a", question + "b"}, "down --yes --agent b, then purge again"},
		{139, 0, []string{question + "a", question + "b"}, "failed with status 139,"},
		{0, 1, []string{question + "a", question + "b", question + "c d", question + "e", order + "a", order + "b"},
			"taken down before it: a."},
		{0, 2, []string{question + "a", question + "b", question + "c d", question + "e", order + "a", order + "b"},
			"failed with status 2,"},
		{0, 4, []string{question + "a", question + "b", question + "c d", question + "e", order + "a", order + "b"},
			"taken down before it: a."},
	} {
		t.Run(fmt.Sprintf("dry run %d, down %d", c.dry, c.down), func(t *testing.T) {
			said, asked, left, ok := purging(t, c.dry, c.down)
			if got, want := strings.Join(asked, "\n"), strings.Join(c.asked, "\n"); got != want {
				t.Errorf("heddle was asked:\n%s\nwant:\n%s", got, want)
			}
			fails := c.dry+c.down != 0
			if ok == fails || !strings.Contains(said, c.says) || c.dry != 0 && !strings.Contains(said, "b speaks") {
				t.Errorf("success %v, said:\n%s", ok, said)
			}
			if kept := strings.Contains(strings.Join(left, " "), "a b c d"); kept != fails {
				t.Errorf("the agents' state was kept: %v, want %v; left: %q", kept, fails, left)
			}
		})
	}
}
