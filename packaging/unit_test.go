package packaging

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

const twoGuests = `switches:
  - name: lab
    uplinks: [{name: uplink1, device: up1}]
    portGroups:
      - {name: web, vlan: {access: 100}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa}
  - {name: b, switch: lab, portGroup: web, device: pb}
  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24]}
`

// guests makes an uplink and two guests, each in a namespace of its own on the machine.
func (m *machine) guests() {
	m.t.Helper()
	m.sh(`ip link set lo up
ip link add up1 type veth peer name wire && ip link set wire up
for g in a b; do
	ip netns add $g
	ip link add p$g type veth peer name eth0 netns $g
	ip -n $g link set eth0 up
done
ip -n a addr add 192.0.2.10/24 dev eth0
ip -n b addr add 192.0.2.11/24 dev eth0`)
}

func (m *machine) reach(what string) {
	m.t.Helper()
	m.await(what+": the guests and the host reach each other", func() bool {
		_, err := m.try("sh", "-ec", "ip netns exec a ping -q -c1 -W1 192.0.2.11 && ip netns exec b ping -q -c1 -W1 "+
			"192.0.2.1")
		return err == nil
	})
}

// configured is a machine with the package installed and the two guests on the switch.
func configured(t *testing.T) *machine {
	t.Helper()
	m := boot(t, packages(t))
	m.guests()
	m.sh("dpkg --force-depends -i /run/packages/heddle_" + oldVersion + "_amd64.deb")
	if state := m.property("ActiveState"); state != "active" {
		t.Fatalf("after the installation the agent is %s", state)
	}
	m.sh("cat >/etc/heddle/heddle.yaml <<'END'\n" + twoGuests +
		"END\nheddle check -f /etc/heddle/heddle.yaml\nsystemctl reload heddle.service")
	m.reach("after the reload")
	return m
}

// mostExposed is what systemd may find of the running unit, of 10. It leaves PrivateTmp, ProtectHome and ProtectSystem
// out of its account for a unit that starts early in the boot.
const mostExposed = 2.6

// exposed holds the running unit against mostExposed.
func (m *machine) exposed() {
	m.t.Helper()
	out := m.must("systemd-analyze", "security", "--no-pager", "heddle.service")
	found := regexp.MustCompile(`Overall exposure level for heddle.service: ([0-9.]+)`).FindStringSubmatch(out)
	if found == nil {
		m.t.Fatalf("no verdict:\n%s", out)
	}
	if level, err := strconv.ParseFloat(found[1], 64); err != nil || level > mostExposed {
		m.t.Errorf("exposure %s of 10, at most %.1f is allowed:\n%s", found[1], mostExposed, out)
	}
	m.t.Logf("exposure %s of 10", found[1])
}

// The page says what systemd finds, of the running unit and of its file; the file's verdict depends on the version.
func TestInstallPageSaysHowExposedTheUnitIs(t *testing.T) {
	testkit.Tool(t, "systemd-analyze")
	page, err := os.ReadFile("../docs/how-to/start/install.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile("gives ([0-9.]+) of 10 for the running unit, and ([0-9.]+) with `--offline=yes` for " +
		"the file alone \\(systemd ([0-9]+);").FindStringSubmatch(string(page))
	if said == nil {
		t.Fatal("the page has no such sentence")
	}
	if said[1] != fmt.Sprint(mostExposed) {
		t.Errorf("the page says %s of the running unit, the test of it %.1f", said[1], mostExposed)
	}
	found := regexp.MustCompile(`Overall exposure level for heddle.service: ([0-9.]+)`).FindStringSubmatch(
		output(t, "systemd-analyze", "security", "--no-pager", "--offline=yes", "systemd/heddle.service"))
	if found == nil {
		t.Fatal("no verdict")
	}
	version := regexp.MustCompile(`^systemd ([0-9]+)`).FindStringSubmatch(output(t, "systemd-analyze", "--version"))
	if version == nil || version[1] != said[3] {
		t.Logf("this is systemd %q, the page's figure is of %s: here it is %s", version, said[3], found[1])
		return
	}
	if found[1] != said[2] {
		t.Errorf("the page says %s of the file, systemd %s", said[2], found[1])
	}
}

// capabilities of the unit: their numbers are the kernel's (capability.h).
const unitCapabilities = 1<<1 | 1<<11 | 1<<12 | 1<<13 | 1<<38 | 1<<39

func TestTheAgentRunsWithTheUnitsRightsAlone(t *testing.T) {
	t.Parallel()
	testkit.Tool(t, "systemd-analyze")
	m := configured(t)
	m.exposed()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%s/root/proc/%d/status", m.pid, m.agentPID()))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]string{}
	for line := range strings.Lines(string(status)) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			has[k] = strings.TrimSpace(v)
		}
	}
	for _, set := range []string{"CapEff", "CapPrm", "CapBnd"} {
		if has[set] != fmt.Sprintf("%016x", uint64(unitCapabilities)) {
			t.Errorf("%s is %s, want %016x", set, has[set], uint64(unitCapabilities))
		}
	}
	if has["Seccomp"] != "2" || has["NoNewPrivs"] != "1" {
		t.Errorf("system calls are not filtered, or privileges can be gained: %s %s", has["Seccomp"], has["NoNewPrivs"])
	}
	m.sh(fmt.Sprintf(`for path in /etc /usr /proc/sys/kernel; do
	nsenter --target %d --mount sh -c "! touch $path/written 2>/dev/null" || { echo "$path can be written"; exit 1; }
done`, m.agentPID()))
	// What the agent does at run time, it can do: take a port that appears, give one back, remember, answer.
	m.sh(
		`ip netns add c && ip link add pc type veth peer name eth0 netns c && ip -n c link set eth0 up && ip -n c addr add 192.0.2.12/24 dev eth0
heddle port connect c --port-group web --device pc
for i in $(seq 100); do ip netns exec c ping -q -c1 -W1 192.0.2.1 >/dev/null && break; [ $i -lt 100 ]; done
[ "$(cat /proc/sys/net/ipv6/conf/pc/disable_ipv6)" = 1 ]
heddle port disconnect c
[ "$(cat /proc/sys/net/ipv6/conf/pc/disable_ipv6)" = 0 ]
heddle switch list
mkdir -p /etc/default && echo HEDDLE_METRICS=127.0.0.1:9946 >/etc/default/heddle`)
	m.begin("restart")
	m.sh(
		`bash -ec 'exec 3<>/dev/tcp/127.0.0.1/9946; printf "GET /metrics HTTP/1.0\r\n\r\n" >&3; grep -q ^heddle_agent_info <&3'`)
	if log := m.sh("cat /run/heddle.log"); strings.Contains(log, "level=ERROR") {
		t.Errorf("the agent logged faults:\n%s", log)
	}
}

func TestTheAgentReachesTheMonitorOfAGuestThatRunsAsAnotherUser(t *testing.T) {
	t.Parallel()
	testkit.Tool(t, "socat")
	m := configured(t)
	// As QEMU under libvirt: another user, whose directory and socket nobody else may use.
	m.sh(`mkdir /run/guest && chown 65534 /run/guest && chmod 0700 /run/guest
cat >/run/monitor <<'END'
#!/bin/sh
echo '{"QMP": {"version": {"qemu": {"micro": 0, "minor": 2, "major": 7}, "package": ""}, "capabilities": []}}'
exec cat >>/run/guest/said
END
chmod 0755 /run/monitor
systemd-run --quiet --uid=65534 --unit=guest socat UNIX-LISTEN:/run/guest/qmp,mode=0700,fork EXEC:/run/monitor
ip link add p9 type veth peer name guest9 && ip link set guest9 up
until [ -S /run/guest/qmp ]; do sleep 0.05; done
heddle port connect vm9 --port-group web --device p9 --mac 02:00:00:00:00:99 --qmp /run/guest/qmp --qmp-nic net0`)
	m.await("the agent talks to the monitor", func() bool {
		said, _ := m.try("cat", "/run/guest/said")
		return strings.Contains(said, "qmp_capabilities")
	})
}

func TestTheAgentIsBackAfterAnyEndAndNoAttachmentGoes(t *testing.T) {
	t.Parallel()
	m := configured(t)
	for i, how := range []string{"kill -KILL", "kill -ABRT", "kill -TERM"} {
		before := m.agentPID()
		m.sh(fmt.Sprintf("%s %d", how, before))
		m.await("the agent is back after "+how, func() bool {
			now := m.agentPID()
			return now != 0 && now != before && m.property("ActiveState") == "active"
		})
		m.reach("after " + how)
		if n := m.property("NRestarts"); n != strconv.Itoa(i+1) {
			t.Errorf("%s restarts after %d ends", n, i+1)
		}
	}
	m.sh("systemctl stop heddle.service")
	m.reach("while the agent is stopped")
	m.begin("start")
	m.reach("after the start")
}

func TestAnAgentThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	m := configured(t)
	m.sh(`mkdir -p /run/systemd/system/heddle.service.d
printf '[Service]\nWatchdogSec=3s\n' >/run/systemd/system/heddle.service.d/quick.conf
systemctl daemon-reload`)
	m.begin("restart")
	before := m.agentPID()
	m.sh(fmt.Sprintf("kill -STOP %d", before))
	m.await("a stopped agent is replaced", func() bool {
		now := m.agentPID()
		return now != 0 && now != before && m.property("ActiveState") == "active"
	})
	m.reach("after the watchdog")
}

// begin starts or restarts the unit. On a busy machine systemd may remove the control group of a run that has just
// ended while it makes that of the next one (status 219), and tries again by Restart=.
func (m *machine) begin(verb string) {
	m.t.Helper()
	out, err := m.try("systemctl", verb, "heddle.service")
	if err != nil && !strings.Contains(out, "control process exited") {
		m.t.Fatalf("systemctl %s: %v, %s", verb, err, out)
	}
	m.await("the unit is active after "+verb, func() bool { return m.property("ActiveState") == "active" })
}

// refusedStarts is how many starts of the unit systemd has given up before the program began, as begin says.
func (m *machine) refusedStarts() int {
	return strings.Count(m.console.String(), "heddle.service: Main process exited, code=exited, status=219/CGROUP")
}

func TestDownIsFinalUntilTheNextStart(t *testing.T) {
	t.Parallel()
	m := configured(t)
	m.sh("heddle down")
	m.await("the unit has ended", func() bool { return m.property("ActiveState") == "inactive" })
	if r := m.property("Result"); r != "success" {
		t.Errorf("the unit's result is %s", r)
	}
	if out := m.sh("ls -A /run/heddle; ip -br link"); strings.Contains(out, "vmk0") || strings.Contains(out, "bpf") {
		t.Errorf("left after down:\n%s", out)
	}
	m.begin("start")
	m.reach("after the start")
}

// A restart, as an upgrade makes one, over a file that has a fault by now goes on by what was applied last.
func TestS163_ARestartOverAFileWithAFaultGoesOn(t *testing.T) {
	t.Parallel()
	m := configured(t)
	m.sh("echo 'switches: [{nam: x}]' >/etc/heddle/heddle.yaml; systemctl restart heddle.service")
	if got := m.property("ActiveState"); got != "active" {
		t.Errorf("the unit is %s", got)
	}
	if out := m.sh("heddle status || true"); !strings.Contains(out, "switches[0].nam: unknown field") {
		t.Errorf("status does not say what is wrong:\n%s", out)
	}
	if out, err := m.try("systemctl", "reload", "heddle.service"); err == nil || m.property("ActiveState") != "active" {
		t.Errorf("a reload of the file succeeds, or ends the unit: %v, %s", err, out)
	}
	m.reach("with the file's fault")
}

func TestAFaultInTheFileEndsInAClearFailureAndNoLoop(t *testing.T) {
	t.Parallel()
	m := configured(t)
	m.sh("heddle down --yes --purge") // an agent that had switches goes on by them
	refused := m.refusedStarts()
	m.sh("echo 'switches: [{nam: x}]' >/etc/heddle/heddle.yaml; systemctl restart heddle.service || true")
	m.await("the unit has failed", func() bool { return m.property("ActiveState") == "failed" })
	code, restarts := m.property("ExecMainStatus"), m.property("NRestarts")
	m.await("the console has the end of the program", func() bool {
		return strings.Contains(m.console.String(), "heddle.service: Main process exited, code=exited, status=78/")
	})
	// A start that systemd itself refuses is none of the program, which has begun once.
	if want := strconv.Itoa(m.refusedStarts() - refused); code != "78" || restarts != want {
		t.Errorf("status %s after %s restarts, %s of which systemd made for starts of its own", code, restarts, want)
	}
	log := m.sh("cat /run/heddle.log")
	if n := strings.Count(log, "switches[0].nam: unknown field"); n != 1 {
		t.Errorf("the program has found the fault %d times:\n%s", n, log)
	}
}

func TestALackingCapabilityIsNamed(t *testing.T) {
	t.Parallel()
	m := configured(t)
	all := []string{"CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON", "CAP_NET_BROADCAST"}
	for _, lacking := range all {
		var rest []string
		for _, c := range all {
			if c != lacking {
				rest = append(rest, "+"+strings.ToLower(strings.TrimPrefix(c, "CAP_")))
			}
		}
		caps := strings.Join(rest, ",")
		out, err := m.try("setpriv", "--bounding-set=-all,"+caps, "--inh-caps=-all,"+caps, "heddle", "agent", "--name",
			"lacking")
		if err == nil || !strings.Contains(out, lacking) {
			t.Errorf("without %s: %v, %s", lacking, err, out)
		}
	}
}

func TestUpgradeRemoveAndPurge(t *testing.T) {
	t.Parallel()
	m := boot(t, packages(t))
	m.guests()
	before := m.sh(snapshot)
	m.sh("dpkg --force-depends -i /run/packages/heddle_" + oldVersion + "_amd64.deb")
	m.sh("cat >/etc/heddle/heddle.yaml <<'END'\n" + twoGuests + "END\nsystemctl reload heddle.service")
	m.reach("after the installation")

	first := m.agentPID()
	m.sh("dpkg --force-depends -i /run/packages/heddle_" + newVersion + "_amd64.deb")
	if now := m.agentPID(); now == first || m.property("ActiveState") != "active" {
		t.Errorf("the upgrade did not restart the agent: process %d, before %d", now, first)
	}
	m.sh("grep -q uplink1 /etc/heddle/heddle.yaml") // an edited configuration stays
	m.reach("after the upgrade")

	out := m.sh("dpkg -r heddle")
	if !strings.Contains(out, "goes on forwarding") {
		t.Errorf("removing does not say what becomes of the switch:\n%s", out)
	}
	m.sh("! command -v heddle; test -e /etc/heddle/heddle.yaml")
	m.reach("after the removal")

	m.sh("dpkg --force-depends -i /run/packages/heddle_" + newVersion + "_amd64.deb")
	m.reach("installed again")
	installed := strings.Fields(m.sh("cd /; dpkg -L heddle | grep heddle"))
	if len(installed) < 50 {
		t.Errorf("only %d files of the package have its name", len(installed))
	}
	m.sh("dpkg -P heddle")
	left := m.sh("for f in /etc/heddle /var/lib/heddle /run/heddle " +
		"/var/lib/systemd/deb-systemd-helper-enabled/heddle.service.dsh-also " +
		"/etc/systemd/system/multi-user.target.wants/heddle.service " + strings.Join(installed, " ") +
		"; do if [ -e $f ] || [ -L $f ]; then echo $f; fi; done")
	if left != "" {
		t.Errorf("left after a purge:\n%s", left)
	}
	if after := m.sh(snapshot); after != before {
		t.Errorf("devices after the purge:\n%s\nbefore:\n%s", after, before)
	}
}

// snapshot prints the devices without what follows with a delay of the kernel's own.
const snapshot = `ip -d -o link | sed -E 's/state \S+|,LOWER_UP|NO-CARRIER,|M-DOWN|qdisc \S+//g'; ip -o addr | grep -v 'inet6 fe80' | sed -E 's/tentative|deprecated//g'; mount -t bpf; cat /proc/sys/net/ipv6/conf/p[ab]/disable_ipv6`
