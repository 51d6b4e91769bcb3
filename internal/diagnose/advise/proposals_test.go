package advise

import (
	"strings"
	"testing"
)

// Proposed returns what the rules propose for each of their faults: the commands, and the configuration file that they
// name. A package that imports the program runs them.
func Proposed(t *testing.T) (commands []string, file string) {
	t.Helper()
	for _, c := range allCases() {
		r := newRig(t, c.text(t))
		c.provoke(r)
		for _, f := range r.found(c.rule) {
			commands = append(commands, f.Command)
		}
	}
	return commands, "heddle.yaml"
}

func TestCommandsQuoteNames(t *testing.T) {
	r := newRig(t, strings.ReplaceAll(sound, "{name: a,", "{name: vm a,"))
	r.dropped("vm a", "guest-tagged", 1)
	const want = "heddle capture 'vm a' --stage drop --reason guest-tagged --count 10"
	if f := r.found("guest-tags"); len(f) != 1 || f[0].Command != want {
		t.Errorf("%+v, want %s", f, want)
	}
}
