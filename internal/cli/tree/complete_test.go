package tree

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heddle/internal/cli"
	"heddle/internal/test/testkit"
)

// directive returns what a shell must do with an answer of __complete.
func directive(t *testing.T, out string) cobra.ShellCompDirective {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	n, err := strconv.Atoi(strings.TrimPrefix(lines[len(lines)-1], ":"))
	if err != nil {
		t.Fatalf("no directive: %q", out)
	}
	return cobra.ShellCompDirective(n)
}

// offersFiles reports whether a shell offers files of any name for an answer of __complete.
func offersFiles(t *testing.T, out string) bool {
	d := directive(t, out)
	return d&(cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveFilterFileExt|
		cobra.ShellCompDirectiveFilterDirs) == 0
}

// TestCompletion_OffersFilesOnlyWhereAFileIsMeant walks the command tree: no argument and no flag's value falls back to
// the names of files in the directory, unless it is listed as a file.
func TestCompletion_OffersFilesOnlyWhereAFileIsMeant(t *testing.T) {
	testkit.Long(t, "completes each argument and flag of every command")
	c := newConsole(t, furnished())
	files := []string{
		"agent --metrics-cert", "agent --metrics-client-ca", "agent --metrics-key", "agent --metrics-token-file",
		"backup diff argument 1", "backup export argument 1", "backup import argument 1", "capture --write",
		"config diff argument 1", "context add --ca", "context add --token-file", "host join --token-file",
		"import vsphere --ca",
		"import vsphere --password-file", "import vsphere argument 1",
		"lab exec argument 3", "lab up argument 1", "login --ca", "port connect --qmp", "trace --pcap",
	}
	var found []string
	tree := NewRoot(cli.Deps{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard,
		Getenv: func(string) string { return "" }})
	eachCommand(tree, nil, func(path []string, sub *cobra.Command) {
		if sub.Hidden {
			return
		}
		asked := append([]string{"__complete"}, path...)
		given := append(slices.Clone(asked), "")
		for range max(1, len(argumentWords.FindAllString(sub.Use, -1))) {
			if out := c.must(given...); offersFiles(t, out) {
				found = append(found, strings.Join(append(path[:len(path):len(path)], "argument "+
					strconv.Itoa(len(given)-len(asked))), " "))
			}
			given = append(given[:len(given)-1], "x", "")
		}
		sub.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.NoOptDefVal != "" || f.Name == "help" {
				return
			}
			out := c.must(append(slices.Clone(asked), "--"+f.Name, "")...)
			switch is := offersFiles(t, out); {
			case f.Name == "controller": // a socket, wherever it stands
				if !is {
					t.Errorf("no file is offered for %s --controller", strings.Join(path, " "))
				}
			case is:
				found = append(found, strings.Join(append(path[:len(path):len(path)], "--"+f.Name), " "))
			}
		})
	})
	slices.Sort(found)
	if !slices.Equal(found, files) {
		t.Errorf("files are offered for\n%q\nwant for\n%q", found, files)
	}
}

// TestCompletion_OffersNames checks that existing names are offered, and only those that begin with the typed text.
func TestCompletion_OffersNames(t *testing.T) {
	c := newConsole(t, furnished())
	for line, want := range map[string][]string{
		"port show vm":                       {"vm1/eth0"},
		"ports show vm":                      {"vm1/eth0"},
		"port move vm1/eth0 --port-group ":   {"web"},
		"port-group show w":                  {"web"},
		"uplink show ":                       {"uplink1"},
		"switch show ":                       {"lab"},
		"mac list --switch ":                 {"lab"},
		"stats u":                            {"uplink1"},
		"uplink list -o ":                    {"table", "wide", "json", "yaml"},
		"port connect p --active ":           {"uplink1"},
		"port connect p --mac-limit-policy ": {"allow", "drop"},
		"port show vm1/eth0 ":                nil,
	} {
		t.Run(line, func(t *testing.T) {
			out := c.must(append([]string{"__complete"}, strings.Split(line, " ")...)...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if got := lines[:len(lines)-1]; !slices.Equal(got, want) && len(got)+len(want) > 0 {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestOtherNamesOfCommands: plurals, and the verbs of other tools, name the same commands.
func TestOtherNamesOfCommands(t *testing.T) {
	c := newConsole(t, furnished())
	for other, name := range map[string]string{
		"ports ls": "port list", "pg list": "port-group list", "portgroup list": "port-group list",
		"port-groups ls": "port-group list",
		"uplinks ls":     "uplink list", "switches list": "switch list", "macs ls": "mac list",
		"pg show web":                 "port-group show web",
		"port move vm1/eth0 --pg web": "port move vm1/eth0 --port-group web",
		"stats --by portgroup":        "stats --by port-group",
		"port rm vm9":                 "port disconnect vm9", "port delete vm9": "port disconnect vm9",
	} {
		t.Run(other, func(t *testing.T) {
			if got, want := c.must(strings.Fields(other)...), c.must(strings.Fields(name)...); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestHelp_EveryCommandIsInAGroup also checks that the names in the groups are those of commands.
func TestHelp_EveryCommandIsInAGroup(t *testing.T) {
	var out bytes.Buffer
	root := NewRoot(cli.Deps{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard,
		Getenv: func(string) string {
			return ""
		}})
	for _, c := range root.Commands() {
		if !c.Hidden && c.GroupID == "" {
			t.Errorf("%s is in no group of groups.go", c.CommandPath())
		}
	}
	if text := helpAt(t, 80); strings.Contains(text, "Additional Commands") ||
		!strings.Contains(text, "Troubleshoot:\n") {
		t.Errorf("the help is not in groups:\n%s", text)
	}
}
