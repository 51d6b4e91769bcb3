package qemu_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/host/qmp"
	"heddle/internal/lab/qemu"
)

// paused is a QEMU that has run its scripts and waits, without a guest, with the given command line and environment.
func (h *heddleHost) paused(t *testing.T, ctx context.Context, env []string, taps ...string) (*exec.Cmd,
	*bytes.Buffer) {
	t.Helper()
	args := []string{"-S", "-name", "debug-threads=off,guest=vm1", "-qmp", "unix:" + filepath.Join(h.Dir, "qmp") +
		",server=on,wait=off"}
	for _, tap := range taps {
		args = append(args, h.card(t, tap, macOfTap(tap))...)
	}
	return h.qemu(t, ctx, env, args...)
}

// card is an adapter on a tap that the packaged scripts connect.
func (h *heddleHost) card(t *testing.T, tap, mac string) []string {
	t.Helper()
	scripts, err := filepath.Abs("../../../packaging/qemu")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"-netdev", "tap,id=" + tap + ",ifname=" + tap + ",script=" + scripts + "/heddle-ifup,downscript=" +
		scripts + "/heddle-ifdown",
		"-device", "virtio-net-pci,romfile=,id=nic-" + tap + ",netdev=" + tap + ",mac=" + mac}
}

// qemu is a QEMU without a guest, with a user's environment.
func (h *heddleHost) qemu(t *testing.T, ctx context.Context, env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		append([]string{"-nodefaults", "-display", "none", "-machine", "pc", "-accel", "tcg", "-m", "32"}, args...)...)
	cmd.Env = append(h.Command().Env, "PATH="+filepath.Dir(h.Binary())+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var says bytes.Buffer
	cmd.Stderr = &says
	if err := h.NS.Start(cmd); err != nil {
		t.Fatal(err)
	}
	return cmd, &says
}

// macOfTap is the MAC of the card on tap-N.
func macOfTap(tap string) string { return "52:54:00:00:01:0" + tap[len(tap)-1:] }

// TestScriptsOfAUser: QEMU runs heddle-ifup and heddle-ifdown as in the how-to.
func TestScriptsOfAUser(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h := newHeddleHost(t, "switches: [{name: lab, portGroups: [{name: web, vlan: {access: 200}}, {name: db}]}]")
	env := []string{"HEDDLE_PORT_GROUP=web", "HEDDLE_QMP=" + filepath.Join(h.Dir, "qmp"), "HEDDLE_MAC_t_1=" +
		macOfTap("t-1"), "HEDDLE_PORT_t_1=vm1/eth0",
		"HEDDLE_QMP_NIC_t_1=nic-t-1", "HEDDLE_MAC_t_2=" + macOfTap("t-2"), "HEDDLE_PORT_GROUP_t_2=db",
		"HEDDLE_QMP_NIC_t_2=nic-t-2"}
	// QEMU has not started its guest (-S): its ports wait for that (S152). The taps belong to one guest: by the port's
	// name, by QEMU's, or as the user says (S111).
	owner := "vm1"
	connected := func(p portView, group, mac string) bool {
		return p.State == "waiting" && (p.Owner == owner || group == "web" && p.Owner == "vm1") &&
			p.PortGroup == group && p.MAC == mac && p.SeenMAC == mac
	}
	run := func(end syscall.Signal) {
		cmd, says := h.paused(t, ctx, env, "t-1", "t-2")
		h.awaitPort(t, ctx, "vm1/eth0", "connected", func(p portView) bool {
			return connected(p, "web", macOfTap("t-1"))
		})
		h.awaitPort(t, ctx, "t-2", "connected", func(p portView) bool { return connected(p, "db", macOfTap("t-2")) })
		_ = cmd.Process.Signal(end)
		_ = cmd.Wait() // a signal's status
		if says.Len() > 0 && end != syscall.SIGTERM {
			t.Errorf("QEMU said: %s", says)
		}
	}
	env, owner = append(env, "HEDDLE_OWNER_t_2=another"), "another"
	run(syscall.SIGKILL) // leaves the ports behind,
	env, owner = env[:len(env)-1], "vm1"
	run(syscall.SIGTERM) // and this one takes their place
	out, err := h.Output(ctx, "port", "list")
	if err != nil || strings.Contains(string(out), "t-1") || strings.Contains(string(out), "t-2") {
		t.Errorf("after the end: %s %v", out, err)
	}
	for _, wrong := range []struct{ setting, want string }{
		{"HEDDLE_PORT_GROUP=wbe", "did you mean web?"},
		{"HEDDLE_PORT_GROUP=", "set HEDDLE_PORT_GROUP and HEDDLE_MAC"},
		{"HEDDLE_RUN_DIR=/nowhere", "no agent is running"},
	} {
		cmd, says := h.paused(t, ctx, append(env, wrong.setting), "t-1")
		if err := cmd.Wait(); err == nil || !strings.Contains(says.String(), wrong.want) {
			t.Errorf("%s: QEMU ended with %v and said %q; want %q", wrong.setting, err, says, wrong.want)
		}
	}
}

// TestS99_TheScriptsOfAUserMoveAPort: two QEMUs on one host with the packaged scripts, the second with -incoming: its
// port waits beside the first one, and the port moves to the second tap when the guest does. No real guest is needed:
// one without a system to boot does as well, and sends nothing.
func TestS99_TheScriptsOfAUserMoveAPort(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	for _, incoming := range []string{"-incoming", "--incoming"} {
		t.Run(incoming, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			h := newHeddleHost(t, "switches: [{name: lab, portGroups: [{name: web, vlan: {access: 200}}]}]")
			const mac = "52:54:00:00:01:01"
			shared := incoming == "--incoming" // with the monitor of a manager, which goes on asking there
			run := func(tap string, more ...string) (cmd *exec.Cmd, says *bytes.Buffer, control *qmp.Client) {
				t.Helper()
				heddles, own := filepath.Join(h.Dir, tap+".qmp"), filepath.Join(h.Dir, tap+".own")
				if shared {
					heddles = filepath.Join(h.Dir, tap, "qemu-server", "101.qmp")
					if err := os.MkdirAll(filepath.Dir(heddles), 0o700); err != nil {
						t.Fatal(err)
					}
				}
				env := []string{"HEDDLE_PORT=vm1/eth0", "HEDDLE_PORT_GROUP=web", "HEDDLE_MAC=" + mac, "HEDDLE_QMP=" +
					heddles}
				args := append(h.card(t, tap, mac), "-qmp", "unix:"+heddles+",server=on,wait=off", "-qmp", "unix:"+own+
					",server=on,wait=off")
				cmd, says = h.qemu(t, ctx, env, append(args, more...)...)
				for control == nil {
					var err error
					if control, err = qmp.Dial(ctx, own, nil); err != nil && ctx.Err() != nil {
						t.Fatalf("%v: QEMU said: %s", err, says)
					} else if err != nil {
						time.Sleep(10 * time.Millisecond)
					}
				}
				t.Cleanup(func() { control.Close() })
				return cmd, says, control
			}
			manager := func(tap string) {
				if !shared {
					return
				}
				t.Helper()
				c, err := qmp.Dial(ctx, filepath.Join(h.Dir, tap, "qemu-server", "101.qmp"), nil)
				if err != nil {
					t.Fatalf("the manager at %s: %v", tap, err)
				}
				defer c.Close()
				if _, err := c.Status(ctx); err != nil {
					t.Errorf("the manager at %s: %v", tap, err)
				}
			}
			at := func(name, device, state string) {
				t.Helper()
				h.awaitPort(t, ctx, name, state+" at "+device, func(p portView) bool {
					return p.State == state &&
						p.Device == device && p.MAC == mac
				})
			}
			end := func(cmd *exec.Cmd, says *bytes.Buffer, control *qmp.Client) {
				t.Helper()
				_, _ = control.Execute(ctx, "quit", nil) // its answer may be lost
				if err := cmd.Wait(); err != nil || says.Len() > 0 {
					t.Errorf("QEMU ended with %v and said %q", err, says)
				}
			}
			source, sourceSays, sourceControl := run("t-1")
			at("vm1/eth0", "t-1", "up")

			// A migration that is cancelled: the new port is removed, and nothing else has changed.
			given, givenSays, givenControl := run("t-2", incoming, "defer")
			at("vm1/eth0:incoming", "t-2", "waiting")
			at("vm1/eth0", "t-1", "up")
			end(given, givenSays, givenControl)
			h.onlyPort(t, ctx, "vm1/eth0")
			at("vm1/eth0", "t-1", "up")

			socket := filepath.Join(h.Dir, "migration")
			target, targetSays, targetControl := run("t-3", incoming, "unix:"+socket)
			at("vm1/eth0:incoming", "t-3", "waiting")
			manager("t-1")
			manager("t-3")
			if _, err := sourceControl.Execute(ctx, "migrate", map[string]string{"uri": "unix:" + socket}); err != nil {
				t.Fatal(err)
			}
			manager("t-1")
			at("vm1/eth0", "t-3", "up")
			at("vm1/eth0:left", "t-1", "waiting")
			manager("t-1")
			manager("t-3")
			end(source, sourceSays, sourceControl)
			h.onlyPort(t, ctx, "vm1/eth0")
			at("vm1/eth0", "t-3", "up")
			end(target, targetSays, targetControl)
			h.onlyPort(t, ctx)
		})
	}
}

// onlyPort fails unless the host has these ports and no others.
func (h *heddleHost) onlyPort(t *testing.T, ctx context.Context, want ...string) {
	t.Helper()
	out, err := h.Output(ctx, "port", "list", "-o", "json")
	var list []struct{ Name string }
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	var got []string
	for _, p := range list {
		got = append(got, p.Name)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("ports %q, want %q: %v", got, want, err)
	}
}
