package agent

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/spec"
)

// Files that replace one another, with what is between switches and ports, in the ways in which files are written.
const (
	readPorts = "ports:\n  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}\n" +
		"  - {name: a, switch: lab, portGroup: web, device: pa}\n"
	readGuest  = readPlain + "ports: [{name: a, switch: lab, portGroup: web, device: pa}]\n"
	readPlain  = "switches:\n  - {name: lab, portGroups: [{name: web}]}\n"
	readTunnel = "switches:\n  - {name: lab, portGroups: [{name: web}], tunnel: {endpoints: [{hostPort: %s}], peers: " +
		"[{address: 192.0.2.2}]}}\n"
)

// utf16Text is a file as programs of Windows write it.
func utf16Text(text string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// filesAfter are files that may replace another one, by what they are.
func filesAfter() map[string]string {
	return map[string]string{
		"the same": readPlain + readPorts, "a tunnel": fmt.Sprintf(readTunnel, "vmk0") + readPorts,
		"a host port that is misspelt": fmt.Sprintf(readTunnel, "vmk1") + readPorts,
		"a guest's port as endpoint":   fmt.Sprintf(readTunnel, "a") + readPorts,
		"a host port in an overlay": strings.Replace(fmt.Sprintf(readTunnel, "vmk0"), "{name: web}",
			"{name: web, overlay: {vni: 7}}", 1) + readPorts,
		"a table that is too small": "host: {macTable: 1}\n" + readPlain + readPorts,
		"another port":              readPlain + strings.Replace(readPorts, "name: a,", "name: b,", 1),
		"no ports":                  readPlain, "no switch at all": "switches: []\n",
		"UTF-16": utf16Text(readPlain + readPorts), "a mark": "\ufeff" + readPlain,
		"CRLF":               strings.ReplaceAll(readPlain, "\n", "\r\n"),
		"JSON with an emoji": `{"switches":[{"name":"\ud83d\ude80","portGroups":[{"name":"web"}]}]}`,
		"YAML 1.2":           "%YAML 1.2\n---\n" + readPlain,
		"empty":              "", "a comment": "# x\n", "three dashes": "---\n# x\n", "a mark alone": "\ufeff",
		"a mark, a comment": "\ufeff# x\n", "a key alone": "switches:\n", "null": "null\n",
		"braces": "{}\n", "cut in the list": "switches:\n  - ",
		"the host alone": "host: {macTable: 8192}\n",
	}
}

// startBy is a start with a file, as the program makes it.
func (r *rig) startBy(file string) error {
	r.t.Helper()
	o := Options{Config: file, Name: filepath.Base(r.dir), Log: r.log,
		Paths: instance.Paths{State: filepath.Dir(r.dir)}}
	given, err := givenTo(context.Background(), o)
	if err != nil {
		return err
	}
	return r.restartWith(given)
}

// switches names those that are active, with their ports.
func (r *rig) switches() string {
	var names []string
	for _, sw := range r.kernel.last().Plan.Switches {
		names = append(names, sw.Name)
		for _, p := range sw.Ports {
			names = append(names, p.ID.Name)
		}
		if sw.Tunnel != nil {
			names = append(names, "tunnel")
		}
	}
	return strings.Join(names, " ")
}

// Whoever reads a file decides alike what it says: check, apply, a reload, a start with --config, and the next start
// by what was applied.
func TestS161_S162_EveryReaderDecidesAlike(t *testing.T) {
	for before, beforeText := range map[string]string{"plain": readPlain + readPorts, "no host port": readGuest,
		"a tunnel": fmt.Sprintf(readTunnel, "vmk0") + readPorts} {
		for after, content := range filesAfter() {
			t.Run(before+", then "+after, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "heddle.yaml")
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				text, err := spec.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				cfg, checked := spec.Parse(file, text)
				was := newRig(t, beforeText).switches()
				want := was // of a reload and a start
				if checked == nil && cfg.ListsSwitches() {
					want = newRig(t, string(text)).switches()
				}
				r := newRig(t, beforeText)
				if err := r.apply(string(text)); (err == nil) != (checked == nil) {
					t.Errorf("apply says %v, check %v", err, checked)
				}
				if (checked != nil || cfg.ListsSwitches()) && r.switches() != want {
					t.Errorf("after apply: %q, want %q", r.switches(), want)
				}
				r.lasts("apply", r.switches())
				r = newRig(t, beforeText)
				r.ports.configFile = file
				r.changer.reload()
				r.lasts("a reload", want)
				r = newRig(t, beforeText)
				if err := r.startBy(file); err != nil {
					t.Errorf("a start: %v", err)
				}
				said := strings.Join(r.ports.unused, "\n")
				if warned := said != "" && !strings.Contains(said, "not read yet"); warned != (checked != nil) {
					t.Errorf("a start warns of %q, check says %v", r.ports.unused, checked)
				}
				r.lasts("a start", want)
			})
		}
	}
}

// lasts makes sure that these switches are active, and are so after another start. A change of host ports is made a
// little later: whoever answers by them is asked first.
func (r *rig) lasts(after, want string) {
	r.t.Helper()
	if err := r.command(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		for got := "-"; got != want; {
			if err := r.Do(ctx, func() error { got = r.switches(); return nil }); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		r.t.Errorf("after %s: %q, want %q", after, r.switches(), want)
	}
	if got := r.switches(); got != want {
		r.t.Errorf("after %s: %q, want %q", after, got, want)
	}
	if err := r.restartWith(nil); err != nil {
		r.t.Errorf("a start after %s: %v", after, err)
	} else if got := r.switches(); got != want {
		r.t.Errorf("a start after %s: %q, want %q", after, got, want)
	}
}

// Without anything to start by, a file with a fault is an error.
func TestS163_AFirstStartNeedsAFileWithoutFaults(t *testing.T) {
	r := newRig(t, "")
	file := filepath.Join(t.TempDir(), "heddle.yaml")
	if err := os.WriteFile(file, []byte("switches: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.startBy(file); err == nil {
		t.Error("the agent starts")
	}
}

// What was applied last and is not valid for this program, as another version's may be, is replaced by the newest
// version of the history that is, and status says so.
func TestS163_AStateThatIsNotValidStartsByTheHistory(t *testing.T) {
	r := newRig(t, readPlain)
	want := r.switches()
	r.state.Config.Content = "switches:\n  - {name: lab, invented: later}\n"
	r.state.Config.Seen = "of the file"
	if err := r.ports.save(); err != nil {
		t.Fatal(err)
	}
	if err := r.restartWith(nil); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(r.ports.unused, "\n"); r.switches() != want || !strings.Contains(said, "version 1") ||
		!strings.Contains(said, "invented") {
		t.Errorf("active %q, said %q", r.switches(), said)
	}
	if s := r.saved().Config; s.Seen != "of the file" || s.Content != readPlain {
		t.Errorf("kept: %+v", s)
	}
	// Without one, the start says what is wrong.
	r.state.Config.Content = "switches: 7\n"
	if err := r.ports.store.Save(r.state); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, "history")); err != nil {
		t.Fatal(err)
	}
	if err := r.restartWith(nil); err == nil || !strings.Contains(err.Error(), "is not valid for this program") {
		t.Errorf("the error is %v", err)
	}
}

// A file that was edited while a change was on trial is read when the trial is decided, also where the change goes
// back.
func TestS164_AFileEditedDuringATrialIsRead(t *testing.T) {
	group := func(name string) string { return strings.Replace(readPlain, "web", name, 1) }
	oldest, tried, edited := readPlain, group("db"), group("new")
	r := newRig(t, oldest)
	before := r.state.Config
	if err := r.apply(tried); err != nil {
		t.Fatal(err)
	}
	j, err := adopt.OpenJournal(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	j.Change = &adopt.Change{Phase: adopt.Waiting, What: "a trial", Place: "an earlier boot", File: &before}
	if err := j.Save(); err != nil {
		t.Fatal(err)
	}
	if err := r.restart(edited); err != nil {
		t.Fatal(err)
	}
	if got := r.state.Config; got.Content != oldest {
		t.Errorf("the trial is undone: %+v", got)
	}
	if r.state.Config.Seen == digest([]byte(edited)) {
		t.Error("the edited file counts as read before it is")
	}
	err = r.command(func(ctx context.Context) error { // the loop runs
		for active := false; !active; {
			if err := r.Do(ctx, func() error { active = r.state.Config.Content == edited; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || r.saved().Config.Content != edited {
		t.Errorf("%v, active is %+v", err, r.saved().Config)
	}
}

// restartWith is restart with what was read of a file, nil for none.
func (r *rig) restartWith(given *givenConfig) error {
	r.t.Helper()
	return r.restartBy(func(*state.State) *givenConfig { return given })
}
