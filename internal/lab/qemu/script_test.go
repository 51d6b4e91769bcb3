package qemu_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
)

// paused is a QEMU that ran its scripts and waits, without a guest: the user's command line, and the user's environment.
func (h *heddleHost) paused(t *testing.T, ctx context.Context, env []string, taps ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	scripts, err := filepath.Abs("../../../packaging/qemu")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-nodefaults", "-display", "none", "-machine", "pc", "-accel", "tcg", "-S", "-qmp", "unix:" + filepath.Join(h.Dir, "qmp") + ",server=on,wait=off"}
	for _, tap := range taps {
		args = append(args, "-netdev", "tap,id="+tap+",ifname="+tap+",script="+scripts+"/heddle-ifup,downscript="+scripts+"/heddle-ifdown",
			"-device", "virtio-net-pci,romfile=,id=nic-"+tap+",netdev="+tap+",mac="+macOfTap(tap))
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
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

// TestScriptsOfAUser: QEMU runs heddle-ifup and heddle-ifdown as the how-to has it.
func TestScriptsOfAUser(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := newHeddleHost(t, "switches: [{name: lab, portGroups: [{name: web, vlan: {access: 200}}, {name: db}]}]")
	env := []string{"HEDDLE_PORT_GROUP=web", "HEDDLE_QMP=" + filepath.Join(h.Dir, "qmp"), "HEDDLE_MAC_t_1=" + macOfTap("t-1"), "HEDDLE_PORT_t_1=vm1/eth0",
		"HEDDLE_QMP_NIC_t_1=nic-t-1", "HEDDLE_MAC_t_2=" + macOfTap("t-2"), "HEDDLE_PORT_GROUP_t_2=db", "HEDDLE_QMP_NIC_t_2=nic-t-2"}
	connected := func(p portView, group, mac string) bool {
		return p.State == "up" && p.PortGroup == group && p.MAC == mac && p.SeenMAC == mac
	}
	run := func(end syscall.Signal) {
		cmd, says := h.paused(t, ctx, env, "t-1", "t-2")
		h.awaitPort(t, ctx, "vm1/eth0", "connected", func(p portView) bool { return connected(p, "web", macOfTap("t-1")) })
		h.awaitPort(t, ctx, "t-2", "connected", func(p portView) bool { return connected(p, "db", macOfTap("t-2")) })
		_ = cmd.Process.Signal(end)
		_ = cmd.Wait() // a signal's status
		if says.Len() > 0 && end != syscall.SIGTERM {
			t.Errorf("QEMU said: %s", says)
		}
	}
	run(syscall.SIGKILL) // leaves the ports behind,
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
