package adopttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/observe/undone"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// managed is a host whose own address is on a host port, as after a finished installation: the gateway is behind the
// uplink.
const managed = `
switches:
  - name: lab
    uplinks: [{name: uplink1, device: eth0}, {name: uplink2, device: eth1}]
    portGroups:
      - {name: management, teaming: {active: [uplink1]}}
      - {name: other, vlan: {access: 66}, teaming: {active: [uplink1]}}
      - {name: web, vlan: {access: 10}, teaming: {active: [uplink1]}}
ports:
  - {name: vmk0, switch: lab, portGroup: management, role: host, mac: "02:00:00:00:00:10", addresses: [192.0.2.10/24, "2001:db8::10/64"]}
`

const moved = "name: management, vlan: {access: 66}, teaming"

func newManaged(t *testing.T) *estate {
	t.Helper()
	e := newCables(t)
	e.run("ip link add eth1 type veth peer name far1")
	e.run("ip link set eth1 up")
	e.run("ip link set far1 up")
	e.Start("")
	e.Configure(managed)
	e.Await("the host reaches the gateway", func() bool {
		_, err := e.NS.Output("ping", "-n", "-c", "1", "-W", "1", "192.0.2.1")
		return err == nil
	})
	for _, c := range []string{"ip route add default via 192.0.2.1 dev vmk0",
		"ip -6 route add default via 2001:db8::1 dev vmk0", "ip route add 10.0.0.0/8 via 192.0.2.2 dev vmk0 table 77",
		"ip rule add iif vmk0 lookup 77 priority 500"} {
		e.run(c)
	}
	e.settledOn("vmk0")
	return e
}

// settledOn waits until the addresses of the interface are usable.
func (e *estate) settledOn(device string) {
	e.T.Helper()
	e.Await("no address is tentative", func() bool {
		return !strings.Contains(e.run("ip address show dev "+device),
			"tentative")
	})
}

// try applies a configuration, and returns the answer, what else the command said, and its exit status.
func (e *estate) try(config string, more ...string) (out api.Applied, errs string, status int) {
	e.T.Helper()
	file := filepath.Join(e.Dir, "next.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		e.T.Fatal(err)
	}
	return e.answer(append([]string{"apply", "-f", file, "-o", "json"}, more...)...)
}

// answer runs a command that says what became of a change. One that does not end is killed, and that is an error.
func (e *estate) answer(args ...string) (out api.Applied, errs string, status int) {
	e.T.Helper()
	cmd := e.Command(args...)
	var o, r bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &r
	if err := e.Launch(cmd); err != nil {
		e.T.Fatal(err)
	}
	late := time.AfterFunc(realhost.Patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		e.T.Errorf("heddle %s does not end", strings.Join(args, " "))
	}
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		e.T.Fatal(err)
	}
	if o.Len() > 0 {
		if err := json.Unmarshal(o.Bytes(), &out); err != nil {
			e.T.Errorf("%v: %s", err, o.String())
		}
	}
	return out, r.String(), cmd.ProcessState.ExitCode()
}

func edit(t *testing.T, from, to string) string {
	t.Helper()
	out := strings.Replace(managed, from, to, 1)
	if out == managed {
		t.Fatalf("%q is not there", from)
	}
	return out
}

// vlanOf returns the VLAN of the host port.
func (e *estate) vlanOf(port string) string {
	e.T.Helper()
	s, err := e.State(e.T.Context())
	if err != nil {
		e.T.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.Name == port {
			return p.VLAN.String()
		}
	}
	return "there is no port " + port
}

// back fails the test unless the change was undone and the host has everything that it had before.
func (e *estate) back(before []string, out api.Applied, errs string, status int) {
	e.T.Helper()
	if status != 1 || out.Trial == nil || out.Trial.State != api.TrialReverted || len(out.Trial.Asked) == 0 {
		e.T.Errorf("status %d: %+v\n%s", status, out.Trial, errs)
	}
	e.reaches()
	e.restored(before, "went back")
	if n, text := e.happened(event.Reverted); n == 0 || !strings.Contains(text, "answered before") {
		e.T.Errorf("%d events: %s", n, text)
	}
}

func TestS81_AnApplyThatCutsTheHostOffGoesBack(t *testing.T) {
	t.Parallel()
	e := newManaged(t)
	before := e.settled()
	s := e.stream("203.0.113.9")
	out, errs, status := e.try(edit(t, "name: management, teaming", moved))
	e.back(before, out, errs, status)
	if !strings.Contains(errs, "gateway 192.0.2.1 by vmk0") || !strings.Contains(errs, "vlan: none → access 66") {
		t.Errorf("the command says: %s", errs)
	}
	if v := e.vlanOf("vmk0"); v != "none" {
		t.Errorf("VLAN %s", v)
	}
	e.goesOn(s, "after it went back")
	e.end(s)
	e.End(syscall.SIGKILL)
	e.Start("")
	if v := e.vlanOf("vmk0"); v != "none" {
		t.Errorf("after a restart: VLAN %s", v)
	}
}

// The time to confirm is 20 s. A host that a change cuts off is back within 30 s, and a change that does not is decided
// before its time is over.
func TestTime_S81_AChangeIsDecidedInItsTime(t *testing.T) {
	e := newManaged(t)
	before := e.settled()
	began := time.Now()
	out, errs, status := e.try(edit(t, "name: management, ", "name: management, security: {forgedTransmits: accept}, "))
	took := time.Since(began)
	t.Logf("a harmless change is decided after %s", took)
	if status != 0 || out.Trial == nil || out.Trial.State != api.TrialKept || took > 15*time.Second {
		t.Errorf("harmless: status %d after %s: %+v\n%s", status, took, out.Trial, errs)
	}
	e.Configure(managed)
	began = time.Now()
	out, errs, status = e.try(edit(t, "name: management, teaming", moved))
	took = time.Since(began)
	t.Logf("the host is back after %s", took)
	if took > 30*time.Second {
		t.Errorf("the host was back after %s, want 30 s at most", took)
	}
	e.back(before, out, errs, status)
}

func TestS81_EveryWayOfCuttingTheHostOffGoesBack(t *testing.T) {
	testkit.Long(t, "has a trial for each way of cutting a host off; TestS81_AnApplyThatCutsTheHostOffGoesBack has "+
		"one")
	t.Parallel()
	e := newManaged(t)
	before := e.settled()
	const window = "--confirm-within=3s"
	port := "  - {name: vmk0, switch: lab, portGroup: management, role: host, mac: \"02:00:00:00:00:10\", addresses: " +
		"[192.0.2.10/24, \"2001:db8::10/64\"]}\n"
	for what, config := range map[string]string{
		"the port is deleted":       edit(t, port, "  []\n"),
		"the port group is blocked": edit(t, "name: management, ", "name: management, blocked: true, "),
		"another uplink": edit(t, "name: management, teaming: {active: [uplink1]}",
			"name: management, teaming: {active: [uplink2]}"),
		"no uplink": edit(t, "name: management, teaming: {active: [uplink1]}",
			"name: management, teaming: {active: []}"),
		"the uplink's device is another": strings.NewReplacer("device: eth0", "device: eth1", "device: eth1",
			"device: eth0").Replace(managed),
		"the uplink carries another VLAN": edit(t, "device: eth0}", `device: eth0, vlans: ["5"]}`),
		"the uplink is blocked":           edit(t, "device: eth0}", "device: eth0, blocked: true}"),
		"a LAG that nobody bundles": strings.Replace(edit(t, "    portGroups:", "    lags: [{name: lag1, "+
			"uplinks: [uplink2], fallback: none}]\n    portGroups:"), "name: management, teaming: {active: [uplink1]}",
			"name: management, teaming: {active: [lag1]}", 1),
		"another switch, which has no uplink": strings.Replace(edit(t, "ports:", "  - {name: second, portGroups: "+
			"[{name: management}]}\nports:"), "name: vmk0, switch: lab", "name: vmk0, switch: second", 1),
		"an address of another network":         edit(t, "192.0.2.10/24", "198.51.100.10/24"),
		"the switch goes with everything on it": "switches: [{name: lab}]\n",
	} {
		out, errs, status := e.try(config, window)
		e.back(before, out, errs, status)
		if t.Failed() {
			t.Fatalf("%s: %+v\n%s", what, out, errs)
		}
	}
	for _, command := range []string{"port block vmk0", "port move vmk0 --port-group other"} {
		out, errs, status := e.answer(append(strings.Fields(command), "-o", "json", window)...)
		e.back(before, out, errs, status)
		if t.Failed() {
			t.Fatalf("%s: %s", command, errs)
		}
	}
}

func TestS81_APortConnectedByCommandComesBackWhole(t *testing.T) {
	t.Parallel()
	e := newManaged(t)
	for _, c := range []string{"port connect vmk1 --port-group management --role host --mac 02:00:00:00:00:11 " +
		"--address 192.0.2.20/24", "port block vmk1", "port unblock vmk1"} {
		if err := e.Heddle(append(strings.Fields(c), strings.Fields(confirmWhere(c))...)...); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(c, "block") {
			if err := e.Heddle("confirm"); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.run("ip route add 198.51.100.0/24 via 192.0.2.2 dev vmk1")
	before := e.settled()
	state, err := e.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, errs, status := e.answer("port", "disconnect", "vmk1", "--confirm-within", "2s")
	if status != 1 || !strings.Contains(errs, "gateway 192.0.2.2 by vmk1") {
		t.Errorf("status %d: %s", status, errs)
	}
	e.restored(before, "went back")
	after, err := e.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range state.Ports {
		if q := after.Ports[i]; q.Name != p.Name || q.Number != p.Number || q.VLAN != p.VLAN {
			t.Errorf("port %+v is %+v now", p, q)
		}
	}
}

// vmk1 returns a host port with addresses of the host's own that was connected by command; group is its port group.
func vmk1(group string, more ...string) []string {
	return append([]string{"port", "connect", "vmk1", "--port-group", group, "--role", "host", "--mac",
		"02:00:00:00:00:11", "--address", "192.0.2.20/24", "-o", "json"}, more...)
}

// A port that is connected by command is undone like every other change, also if the command is interrupted or the
// agent is killed.
func TestS81_AConnectionThatCutsTheHostOffGoesBack(t *testing.T) {
	testkit.Long(t, "waits for trials; TestS81_AnApplyThatCutsTheHostOffGoesBack has one")
	t.Parallel()
	e := newManaged(t)
	if _, errs, status := e.answer(vmk1("management")...); status != 0 {
		t.Fatal(errs)
	}
	e.run("ip route add 198.51.100.0/24 via 192.0.2.2 dev vmk1")
	before := e.settled()
	goesBack := func(why string, n int) {
		t.Helper()
		e.Await("it goes back "+why, func() bool { return e.vlanOf("vmk1") == "none" })
		e.restored(before, why)
		if got, text := e.happened(event.Reverted); got != n ||
			!strings.Contains(text, `"port connect vmk1" was taken back`) {
			t.Errorf("%s: %d events: %s", why, got, text)
		}
	}
	for i, how := range []string{"--replace", "--incoming"} {
		out, errs, status := e.answer(vmk1("other", how, "--confirm-within", "2s")...)
		if status != 1 || out.Trial == nil || out.Trial.State != api.TrialReverted ||
			!strings.Contains(errs, "gateway 192.0.2.2 by vmk1") {
			t.Errorf("%s: status %d: %+v\n%s", how, status, out.Trial, errs)
		}
		goesBack("after "+how, 1+i)
	}
	// Interrupted: the agent continues without the command.
	cmd := e.Command(vmk1("other", "--replace", "--confirm-within", "15s")...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := e.Launch(cmd); err != nil {
		t.Fatal(err)
	}
	e.Await("the change is made", func() bool { return e.vlanOf("vmk1") == "access 66" })
	_ = cmd.Process.Signal(syscall.SIGINT)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(errs.String(), `the agent goes on: "port connect vmk1" goes back by itself in`) {
		t.Errorf("interrupted: %v: %s", err, errs.String())
	}
	goesBack("after Ctrl-C", 3)
	// Killed: the next agent undoes it, although the time to confirm is not over.
	cmd = e.Command(vmk1("other", "--replace", "--confirm-within", "15s")...)
	if err := e.Launch(cmd); err != nil {
		t.Fatal(err)
	}
	e.Await("the change is made", func() bool { return e.vlanOf("vmk1") == "access 66" })
	e.End(syscall.SIGKILL)
	_ = cmd.Wait() // it lost the agent
	e.Start("")
	goesBack("after a kill", 1)
}

// If nobody can be asked, a connection needs the operator's confirmation.
func TestS81_AConnectionIsConfirmedWhereNobodyCanBeAsked(t *testing.T) {
	t.Parallel()
	e := newManaged(t)
	if _, errs, status := e.answer(vmk1("management")...); status != 0 {
		t.Fatal(errs)
	}
	e.silence()
	e.run("ip neighbour flush dev vmk1 nud all")
	if _, errs, status := e.answer(vmk1("other", "--replace")...); status != 2 ||
		!strings.Contains(errs, "give --confirm-within DURATION") || e.vlanOf("vmk1") != "none" {
		t.Fatalf("status %d, VLAN %s: %s", status, e.vlanOf("vmk1"), errs)
	}
	for _, confirmed := range []bool{false, true} {
		within := map[bool]string{false: "2s", true: "1h"}[confirmed]
		out, errs, status := e.answer(vmk1("other", "--replace", "--confirm-within", within)...)
		if status != 0 || out.Trial == nil || out.Trial.State != api.TrialConfirm ||
			!strings.Contains(errs, "heddle confirm") {
			t.Fatalf("status %d: %+v %s", status, out.Trial, errs)
		}
		if !confirmed {
			e.Await("it goes back", func() bool { return e.vlanOf("vmk1") == "none" })
			if n, text := e.happened(event.Reverted); n != 1 || !strings.Contains(text, "not confirmed within 2s") {
				t.Errorf("%d events: %s", n, text)
			}
			continue
		}
		if err := e.Heddle("confirm"); err != nil {
			t.Fatal(err)
		}
		if v := e.vlanOf("vmk1"); v != "access 66" {
			t.Errorf("confirmed, and VLAN %s", v)
		}
	}
}

// confirmWhere returns the flag that a command needs if nobody can be asked yet: a new interface has no neighbours.
func confirmWhere(command string) string {
	if strings.Contains(command, "connect") {
		return ""
	}
	return "--confirm-within 1m"
}

func TestS81_AHarmlessChangeStaysAtOnce(t *testing.T) {
	testkit.Long(t, "has a trial of each harmless change; TestS81_ATCPConnectionIsEnoughWhereTheGatewayIsSilent "+
		"has one that stays")
	t.Parallel()
	e := newManaged(t)
	for what, config := range map[string]string{
		"a standby uplink": edit(t, "name: management, teaming: {active: [uplink1]}",
			"name: management, teaming: {active: [uplink1], standby: [uplink2]}"),
		"a smaller MTU":     edit(t, "mac: \"02:00:00:00:00:10\"", "mtu: 1400, mac: \"02:00:00:00:00:10\""),
		"another MAC":       edit(t, "00:10\"", "00:12\""),
		"a security policy": edit(t, "name: management, ", "name: management, security: {forgedTransmits: accept}, "),
	} {
		out, errs, status := e.try(config, "--confirm-within", "1h") // for longer than try waits
		if status != 0 || out.Trial == nil || out.Trial.State != api.TrialKept {
			t.Errorf("%s: status %d: %+v\n%s", what, status, out.Trial, errs)
		}
		e.Await("the host reaches the gateway after "+what, func() bool { // it may look for another MAC for a while
			_, err := e.NS.Output("ping", "-n", "-c", "1", "-W", "1", "2001:db8::1")
			return err == nil
		})
	}
	if n, _ := e.happened(event.Reverted); n != 0 {
		t.Errorf("%d changes went back", n)
	}
	// A port that has nothing to do with the host's own addresses is connected without a trial.
	e.Configure(managed)
	out, errs, status := e.try(edit(t, "vlan: {access: 10}", "vlan: {access: 11}"))
	if status != 0 || out.Trial != nil {
		t.Errorf("status %d: %+v\n%s", status, out.Trial, errs)
	}
}

func TestS81_ATCPConnectionIsEnoughWhereTheGatewayIsSilent(t *testing.T) {
	t.Parallel()
	e := newManaged(t)
	// The gateway forwards but does not answer ARP: its MAC is set by hand.
	mac := strings.Fields(e.run("ip neighbour show 192.0.2.1 dev vmk0"))[2]
	e.run("ip neighbour replace 192.0.2.1 lladdr " + mac + " dev vmk0 nud permanent")
	e.run("ip -6 route del default via 2001:db8::1 dev vmk0")
	e.run("ip route flush table 77")
	e.run("ip neighbour flush dev vmk0 nud all")
	e.run("ip neighbour replace 192.0.2.1 lladdr " + mac + " dev vmk0 nud permanent")
	e.outside("sysctl -q -w net.ipv4.conf.gw0.arp_ignore=8")
	s := e.stream("203.0.113.9")
	e.goesOn(s, "before")
	out, errs, status := e.try(edit(t, "name: management, ", "name: management, security: {forgedTransmits: "+
		"accept}, "))
	if status != 0 || out.Trial == nil || out.Trial.State != api.TrialKept || len(out.Trial.Asked) == 0 ||
		out.Trial.Asked[0].Kind != "session" {
		t.Errorf("status %d: %+v\n%s", status, out.Trial, errs)
	}
	e.goesOn(s, "after a harmless change")
	before := e.settled()
	out, errs, status = e.try(edit(t, "name: management, teaming", moved), "--confirm-within", "4s")
	if status != 1 || out.Trial == nil || out.Trial.State != api.TrialReverted ||
		!strings.Contains(errs, "TCP connection") {
		t.Errorf("status %d: %+v\n%s", status, out.Trial, errs)
	}
	e.restored(before, "went back")
	e.goesOn(s, "after it went back")
	e.end(s)
}

// silence removes everybody who could be asked.
func (e *estate) silence() {
	e.T.Helper()
	e.outside("ip link set gw0 down")
	e.run("ip neighbour flush dev vmk0 nud all")
}

func TestS81_WhereNobodyCanBeAskedTheOperatorConfirms(t *testing.T) {
	testkit.Long(t, "waits for trials; TestS81_AConnectionIsConfirmedWhereNobodyCanBeAsked has one")
	t.Parallel()
	e := newManaged(t)
	e.silence()
	next := edit(t, "name: management, teaming", moved)
	_, errs, status := e.try(next)
	if status != 2 || !strings.Contains(errs, "--confirm-within") || e.vlanOf("vmk0") != "none" {
		t.Fatalf("status %d, VLAN %s: %s", status, e.vlanOf("vmk0"), errs)
	}
	out, errs, status := e.try(next, "--confirm-within", "15s")
	if status != 0 || out.Trial == nil || out.Trial.State != api.TrialConfirm ||
		!strings.Contains(errs, "heddle confirm") {
		t.Errorf("status %d: %+v %s", status, out.Trial, errs)
	}
	e.Await("it goes back", func() bool { return e.vlanOf("vmk0") == "none" })
	if n, text := e.happened(event.Reverted); n != 1 || !strings.Contains(text, "not confirmed within 15s") {
		t.Errorf("%d events: %s", n, text)
	}
	if err := e.Heddle("confirm"); err == nil {
		t.Error("confirmed what has gone back")
	}
	if _, errs, status := e.try(next, "--confirm-within", "1h"); status != 0 {
		t.Fatal(errs)
	}
	if _, errs, status := e.answer("port", "connect", "vm1", "--port-group", "web"); status != 2 ||
		!strings.Contains(errs, "heddle confirm") {
		t.Errorf("another change meanwhile: status %d, %s", status, errs)
	}
	if err := e.Heddle("confirm"); err != nil {
		t.Fatal(err)
	}
	if v := e.vlanOf("vmk0"); v != "access 66" {
		t.Errorf("confirmed, and VLAN %s", v)
	}
	e.End(syscall.SIGKILL)
	e.Start("")
	if v := e.vlanOf("vmk0"); v != "access 66" {
		t.Errorf("confirmed and restarted, and VLAN %s", v)
	}
}

func TestS81_ADryRunSaysWhatIsAtRiskAndWhoIsAsked(t *testing.T) {
	t.Parallel()
	e := newManaged(t)
	next := edit(t, "name: management, teaming", moved)
	out, errs, status := e.try(next, "--dry-run")
	if status != 0 || out.Trial == nil || out.Trial.State != api.TrialPlanned || len(out.Trial.AtRisk) != 1 ||
		len(out.Trial.Asked) < 2 || !strings.Contains(errs, "vmk0: vlan: none → access 66") ||
		!strings.Contains(errs, "192.0.2.1") {
		t.Errorf("status %d: %+v\n%s", status, out.Trial, errs)
	}
	e.silence()
	out, errs, status = e.try(next, "--dry-run")
	if status != 0 || out.Trial == nil || out.Trial.ReasonCode != undone.NobodyToAsk ||
		!strings.Contains(out.Trial.Reason, "--confirm-within") ||
		!strings.Contains(errs, "would be refused") {
		t.Errorf("status %d: %+v\n%s", status, out.Trial, errs)
	}
	if v := e.vlanOf("vmk0"); v != "none" {
		t.Errorf("a dry run made it VLAN %s", v)
	}
}

// The agent is killed during a trial: the next agent decides, and if the time is over it undoes the change first.
func TestS81_TheNextAgentTakesBackWhatIsNotKnownToBeReached(t *testing.T) {
	testkit.Long(t, "waits for trials that the next agent ends; TestS81_AReleaseIsWatchedByTheNextAgent has one")
	t.Parallel()
	for _, c := range []struct {
		what, within string
		reboot       bool
	}{{"in time", "6s", false}, {"when the time is over", "5s", false}, {"after a reboot", "1h", true}} {
		t.Run(c.what, func(t *testing.T) {
			e := newManaged(t)
			before := e.settled()
			file := filepath.Join(e.Dir, "next.yaml")
			if err := os.WriteFile(file, []byte(edit(t, "name: management, teaming", moved)), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := e.Command("apply", "-f", file, "--confirm-within", c.within)
			if err := e.Launch(cmd); err != nil {
				t.Fatal(err)
			}
			e.Await("the change is made", func() bool { return e.vlanOf("vmk0") == "access 66" })
			e.End(syscall.SIGKILL)
			_ = cmd.Wait() // it lost the agent
			if c.reboot {
				e.reboot()
			}
			if c.within == "5s" {
				time.Sleep(5 * time.Second) // the test is about the time that the change has
			}
			e.Start("")
			if c.within != "6s" && e.vlanOf("vmk0") != "none" {
				t.Errorf("the agent serves with VLAN %s", e.vlanOf("vmk0"))
			}
			e.Await("it goes back", func() bool { return e.vlanOf("vmk0") == "none" })
			if !c.reboot {
				e.reaches()
				e.restored(before, c.what)
			}
			if n, _ := e.happened(event.Reverted); n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
}

// A kill at any instant of a harmless change leaves the host reachable, and the change either made or not made.
func TestS81_AHarmlessChangeStaysThoughTheAgentIsKilled(t *testing.T) {
	testkit.Long(t, "kills agents during a trial; TestS81_AReleaseIsWatchedByTheNextAgent has the next agent")
	t.Parallel()
	e := newManaged(t)
	file := filepath.Join(e.Dir, "next.yaml")
	next := edit(t, "name: management, ", "name: management, security: {forgedTransmits: accept}, ")
	for i := range 6 {
		if err := os.WriteFile(file, []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := e.Command("apply", "-f", file)
		if err := e.Launch(cmd); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 60 * time.Millisecond) // at whatever point the agent is then
		e.End(syscall.SIGKILL)
		_ = cmd.Wait()
		e.Start("")
		e.Await("it is decided", func() bool {
			p, err := e.Progress(t.Context())
			return err == nil && p.Trial == nil
		})
		e.reaches()
		if n, text := e.happened(event.Reverted); n != 0 {
			t.Errorf("round %d: went back: %s", i, text)
		}
		e.Configure(managed)
	}
}

// A device with the host's own addresses becomes an uplink, and then that uplink is changed.
func TestS81_AnUplinkWithTheHostsAddressesIsGuarded(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	before := e.settled()
	if n, _ := e.happened(event.Confirmed); n != 1 {
		t.Errorf("taking eth0 as an uplink was not tried: %d", n)
	}
	out, errs, status := e.try(strings.Replace(adoptConfig, "device: eth0}", `device: eth0, vlans: ["5"]}`, 1),
		"--confirm-within", "3s")
	if status == 0 {
		e.reaches() // the host's own frames do not pass the switch
	} else {
		e.back(before, out, errs, status)
	}
	out, errs, status = e.try("switches: [{name: lab}]\n")
	if status != 0 || out.Trial == nil || out.Trial.State != api.TrialKept {
		t.Errorf("giving eth0 back: status %d, %+v, %s", status, out.Trial, errs)
	}
	e.reaches()
}

// A file that was edited while the agent was stopped is tried as well, and so is one that the agent reads again on
// SIGHUP.
func TestS81_AnEditedFileIsTriedAtTheStartAndOnSIGHUP(t *testing.T) {
	testkit.Long(t, "waits for trials; TestS81_AnApplyThatCutsTheHostOffGoesBack has one")
	t.Parallel()
	e := newManaged(t)
	harmless := edit(t, "name: management, ", "name: management, security: {forgedTransmits: accept}, ")
	e.End(syscall.SIGTERM)
	e.Start(harmless)
	e.Await("the edited file has been tried", func() bool { n, _ := e.happened(event.Confirmed); return n == 1 })
	if err := os.WriteFile(filepath.Join(e.Dir, "heddle.yaml"), []byte(edit(t, "name: management, teaming", moved)),
		0o600); err != nil {
		t.Fatal(err)
	}
	e.Signal(syscall.SIGHUP)
	e.Await("it goes back", func() bool { n, _ := e.happened(event.Reverted); return n == 1 })
	e.reaches()
	// A file that was tried and undone does not count as new at the next start.
	e.End(syscall.SIGTERM)
	e.Start(edit(t, "name: management, teaming", moved))
	if n, _ := e.happened(event.Tried); n != 0 || e.vlanOf("vmk0") != "none" {
		t.Errorf("%d tried, VLAN %s", n, e.vlanOf("vmk0"))
	}
}
