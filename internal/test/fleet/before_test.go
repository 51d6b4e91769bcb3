package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// drawnID is the id of an object, or a revision, in JSON.
var drawnID = regexp.MustCompile(`"(?:id|revision)": ?"?([a-z0-9]+)"?`)

// probedText is the fleet's definition with metered ports and probes of the network.
var probedText = strings.Replace(meteredText, "- name: dvs\n", "- name: dvs\n  healthCheck: true\n", 1)

// Every command works while the controller and the hosts are of two versions, whichever of them is updated first, and
// no frame is lost when a host's agent is exchanged, forward or back.
func TestS83_EachCommandWorksBesideTheVersionBefore(t *testing.T) {
	testkit.Long(t, "builds the version before")
	t.Parallel()
	earlier, _ := realhost.BeforePrograms(t)
	f := newFleet(t)
	f.controller.Start()
	for n, name := range []string{"esx0", "esx1"} {
		f.controller.Join(f.hosts[n].Host, name, map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(probedText); len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	f.connect(1, 4, "p-db", "db")
	f.mustStartVM(0, 5, "p-vm", "web")
	f.allUp()
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))

	for n := range f.hosts {
		f.becomes(n, f.hosts[n].Before)
	}
	t.Run("the controller first", func(t *testing.T) { f.allWork(t) })
	f.exchange(f.controller.Before)
	f.controller.Asking = earlier
	for n := range f.hosts {
		f.becomes(n, f.hosts[n].Earlier)
	}
	t.Run("the hosts first", func(t *testing.T) { f.allWork(t) })
	f.controller.Asking = ""
	t.Run("the hosts first, asked by this version", func(t *testing.T) { f.allWork(t) })
	f.whole("while agents and controllers were exchanged", between)
	f.allTyped(lasts(), t.TempDir())
}

// Controllers of two versions are one cluster while they are updated one after the other: each answers for all hosts,
// also for those that are connected to the other one.
func TestS83_S103_ControllersOfTwoVersionsAnswerTogether(t *testing.T) {
	testkit.Long(t, "builds the version before")
	t.Parallel()
	earlier, _ := realhost.BeforePrograms(t)
	f := newFleet(t)
	all := f.controllers()
	for n := range f.hosts {
		all[n].Join(f.hosts[n].Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := all[0].Define(probedText); len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	f.connect(1, 4, "p-db", "db")
	f.mustStartVM(0, 5, "p-vm", "web")
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	all[1].End(syscall.SIGTERM)
	all[1].Before()
	all[1].Start()
	all[1].Asking = earlier
	f.becomes(1, f.hosts[1].Before)
	for _, c := range all[:2] {
		t.Run(c.Name, func(t *testing.T) {
			row := *f
			row.t, row.controller = t, c
			for n := range f.hosts {
				row.inState(fmt.Sprintf("esx%d", n), api.HostUp)
			}
			c.Await("the controllers reach each other", func() bool {
				_, _, status := c.Heddle("audit", "verify")
				return status == 0
			})
			row.allTyped(append(looks(), changes()...), t.TempDir())
		})
	}
	f.whole("while controllers of two versions are one cluster", between)
}

// allWork has all commands of the tables be typed.
func (f *fleet) allWork(t *testing.T) {
	row := *f
	row.t = t
	row.allUp()
	for _, host := range []string{"esx0", "esx1"} {
		row.inState(host, api.HostUp)
	}
	row.allTyped(append(looks(), changes()...), t.TempDir())
}

// allTyped runs commands, with what they need in a directory.
func (f *fleet) allTyped(list []used, dir string) {
	f.t.Helper()
	drawn := map[string]string{"DIR": dir, "FLEET2": filepath.Join(dir, "fleet2.yaml"),
		"OWN2": filepath.Join(dir, "own2.yaml")}
	own, err := os.ReadFile(f.hosts[1].File())
	if err != nil {
		f.t.Fatal(err)
	}
	for name, text := range map[string]string{
		"FLEET2": strings.Replace(probedText, "{access: 40}", "{access: 41}", 1),
		"OWN2":   strings.Replace(string(own), "{name: office}", "{name: office}, {name: desk}", 1),
	} {
		if err := os.WriteFile(drawn[name], []byte(text), 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
	asked := map[int]*heard{atController: hears(f.t, "api.sock", f.controller.Socket())}
	for n, h := range f.hosts {
		asked[n] = hears(f.t, "default.sock", filepath.Join(h.Dir, "run", "default.sock"))
	}
	for _, u := range list {
		args := os.Expand(u.args, func(name string) string { return drawn[name] })
		out := f.typed(u.host, strings.Fields(args), asked[u.host].path)
		made := asked[u.host].take()
		for c := range strings.FieldsSeq(u.calls) {
			if !made[c] {
				f.t.Errorf("heddle %s does not call %s, but %s", args, c, slices.Sorted(maps.Keys(made)))
			}
		}
		if !strings.Contains(out, u.says) {
			f.t.Errorf("heddle %s says nothing of %q:\n%s", args, u.says, out)
		}
		if id := drawnID.FindStringSubmatch(out); u.draws != "" && id != nil {
			drawn[u.draws] = id[1]
		} else if u.draws != "" {
			f.t.Errorf("heddle %s shows no id:\n%s", args, out)
		}
	}
}

// typed runs a command at the controller or on a host, by way of a socket; it has to succeed. It gives what it prints.
func (f *fleet) typed(host int, args []string, socket string) string {
	f.t.Helper()
	var out, errs bytes.Buffer
	cmd, run, at := f.controller.Command(args...), (*exec.Cmd).Start, "HEDDLE_CONTROLLER="+socket
	if host != atController {
		cmd, run = f.hosts[host].Command(args...), f.hosts[host].Launch
		at = "HEDDLE_RUN_DIR=" + filepath.Dir(socket)
	}
	cmd.Env = append(cmd.Env, at)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := run(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		f.t.Errorf("heddle %s: status %d\n%s%s", strings.Join(args, " "), exit.ExitCode(), out.String(), errs.String())
	case err != nil:
		f.t.Fatal(err)
	}
	return out.String() + errs.String()
}
