package host

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// desk is the machine of somebody who calls a controller over TLS.
type desk struct {
	*threeHosts
	home string
	// real are what stands in the page for a name that is drawn by chance.
	real map[string]string
}

var (
	newToken    = regexp.MustCompile(`(?m)^token ([a-z2-7]{8}) counts until`)
	fingerprint = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	clusterID   = regexp.MustCompile(`\b[a-z2-7]{16}\b`)
)

// typed runs a command of the page, with the real names, and gives what it prints, with those of the page.
func (k *desk) typed(s typed) string {
	k.t.Helper()
	command := s.command
	for page, real := range k.real {
		command = strings.ReplaceAll(command, page, real)
	}
	var out string
	if s.where == "desk" {
		out = k.atDesk(command)
	} else {
		out = k.atController(command, strings.Fields(command))
	}
	if m := newToken.FindStringSubmatch(out); m != nil {
		wanted := newToken.FindStringSubmatch(s.want[0])
		k.real[wanted[1]] = m[1]
	}
	if m := fingerprint.FindString(out); m != "" {
		k.real["sha256:5f1b…"] = m
		out = fingerprint.ReplaceAllString(out, "sha256:5f1b…")
	}
	for page, real := range k.real {
		out = strings.ReplaceAll(out, real, page)
	}
	return clusterID.ReplaceAllString(out, "iwtylvacldra74pk")
}

func (k *desk) atDesk(command string) string {
	k.t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = k.dir
	cmd.Env = append(os.Environ(), "HOME="+k.home, "XDG_CONFIG_HOME=", "HEDDLE_CONTROLLER=")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := k.network.Start(cmd); err != nil {
		k.t.Fatal(err)
	}
	_ = cmd.Wait() // some commands are refused on purpose, and what they print is compared
	return out.String()
}

// TestThePageOfAccessShowsWhatItsCommandsPrint runs the page as a reader would, with a real controller and a host that
// is connected all the while, also when the root is changed.
func TestThePageOfAccessShowsWhatItsCommandsPrint(t *testing.T) {
	testkit.Root(t)
	testkit.Tool(t, "ip", "curl", "grep")
	k := &desk{threeHosts: newThreeHosts(t), home: t.TempDir(), real: map[string]string{}}
	k.controller.Start()
	token, err := k.controller.JoinToken(t.Context(), api.JoinTerms{Labels: map[string]string{"site": "lab"}})
	if err != nil {
		t.Fatal(err)
	}
	k.hosts["esx1"].must("host", "join", "192.0.2.1:7411", "--token", token.Token, "--name", "esx1")
	k.controller.Await("esx1 is up", func() bool { return k.controller.StateOf("esx1") == api.HostUp })
	commands := consoles(page(t, "docs/how-to/many-hosts/access.md"))
	if len(commands) < 18 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	for _, s := range commands {
		out := strings.ReplaceAll(k.typed(s), "(devel)", "0.1.0")
		if why := s.differs(out); why != "" {
			t.Fatalf("%s# %s: %s", s.where, s.command, why)
		}
	}
	if state := k.controller.StateOf("esx1"); state != api.HostUp {
		t.Errorf("after all esx1 is %s", state)
	}
	// The rest of what looks goes over TLS as well, as far as the role allows.
	out := k.atDesk("heddle port list --context admin && heddle context use admin && heddle host list -o json")
	for _, want := range []string{"HOST", "commands use context admin", `"name": "esx1"`} {
		if !strings.Contains(out, want) {
			t.Errorf("over TLS it prints no %s:\n%s", want, out)
		}
	}
	text, err := os.ReadFile(k.home + "/.config/heddle/contexts.yaml")
	if err != nil || !strings.Contains(string(text), "ht1.") {
		t.Errorf("the contexts: %v", fmt.Errorf("%s: %w", text, err))
	}
}
