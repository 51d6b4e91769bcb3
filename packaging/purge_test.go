package packaging

import (
	"strings"
	"testing"
)

// secondSwitch is what a second agent of the machine has: its host port is the address of a connection.
const secondSwitch = `
switches: [{name: two, uplinks: [{name: u1, device: up2}], portGroups: [{name: m}]}]
ports:
  - {name: c, switch: two, portGroup: m, device: pc}
  - {name: vmk9, switch: two, portGroup: m, role: host, addresses: [198.51.100.1/24]}
`

// A purge asks the agents of the host one by one, and has taken none down when one of them refuses.
func TestS182_APurgeThatIsRefusedHasTakenNothingDown(t *testing.T) {
	t.Parallel()
	m := configured(t)
	m.sh(`ip link add up2 type veth peer name wire2 && ip link set wire2 up
ip netns add c
ip link add pc type veth peer name eth0 netns c
ip -n c link set eth0 up
ip -n c addr add 198.51.100.10/24 dev eth0
cat >/run/second.yaml <<'END'` + secondSwitch + `END
setsid heddle agent --name second --config /run/second.yaml --libvirt-dir '' >/run/second.log 2>&1 </dev/null &`)
	m.await("a guest of the second agent reaches its host", func() bool {
		_, err := m.try("ip", "netns", "exec", "c", "ping", "-q", "-c1", "-W1", "198.51.100.1")
		return err == nil
	})
	m.sh(`setsid socat TCP-LISTEN:5000,bind=198.51.100.1,fork EXEC:cat >/dev/null 2>&1 </dev/null &
until ss -Htln sport = :5000 | grep -q .; do sleep 0.1; done
setsid ip netns exec c socat TCP:198.51.100.1:5000 EXEC:'sleep 600' >/dev/null 2>&1 </dev/null &
until ss -Htn sport = :5000 | grep -q 198.51.100.10; do sleep 0.1; done`)
	m.sh("dpkg -r heddle")

	out, err := m.try("dpkg", "-P", "heddle")
	if err == nil || !strings.Contains(out, "1 connection to this host ends (198.51.100.10:") ||
		!strings.Contains(out, "down --yes --agent second, then purge again") {
		t.Errorf("a purge that ends a connection: %v\n%s", err, out)
	}
	m.reach("after the purge was refused")
	out, err = m.try("sh", "-c", "/var/lib/heddle/.removed/heddle down --agent second </dev/null; echo status $?")
	if err != nil || !strings.Contains(out, "status 4") {
		t.Errorf("a removal that ends a connection: %v\n%s", err, out)
	}
	m.sh("/var/lib/heddle/.removed/heddle down --yes --agent second; mkdir /var/lib/heddle/lost+found")

	// What heddle cannot be asked about is not taken for agreement.
	out, err = m.try("dpkg", "-P", "heddle")
	if err == nil || !strings.Contains(out, "/var/lib/heddle/lost+found that is no agent's") {
		t.Errorf("a purge beside a directory that is no agent's: %v\n%s", err, out)
	}
	m.reach("after heddle did not know an agent")
	m.sh("rmdir /var/lib/heddle/lost+found; dpkg -P heddle; ! test -e /var/lib/heddle")
}
