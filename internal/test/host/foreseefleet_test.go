package host

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/diagnose"
	"heddle/internal/test/testkit"
)

// foreseeFleet is a definition whose guests' flows are metered; %s are the security settings of their port group.
const foreseeFleet = `
switches:
  - name: dvs
    uplinks: [{name: uplink1}]
    portGroups:
      - {name: web, vlan: {access: 10}, monitoring: {ipfix: true}%s}
templates:
  - {name: lab, labels: {site: lab}, switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]}
`

// A guest of one host sends with a second MAC. The dry run of a definition that rejects it asks the hosts, names the
// host, the port, the address and the frames, and leaves each host with what it had; what it says is what the kernel
// then does. A host that is away is named.
func TestForesee_ADryRunOfADefinitionAsksTheHosts(t *testing.T) {
	testkit.Long(t, "has three hosts and a controller; TestForesee_ADryRunNamesTheFramesThatTheKernelThenDrops has "+
		"one host")
	m := newThreeHosts(t)
	accepting := fmt.Sprintf(foreseeFleet, ", security: {forgedTransmits: accept, macLearning: {enabled: true}}")
	rejecting := fmt.Sprintf(foreseeFleet, "")
	if err := os.WriteFile(filepath.Join(m.dir, "next.yaml"), []byte(rejecting), 0o600); err != nil {
		t.Fatal(err)
	}
	m.controller.Start()
	for _, name := range []string{"esx1", "esx2", "esx3"} {
		m.token = strings.TrimSpace(m.typed("controller1", "heddle host token --label site=lab"))
		m.typed(name, "heddle host join 192.0.2.1:7411 --token hj1.…")
	}
	m.controller.Define(accepting)
	for _, n := range []string{"1", "2"} {
		m.typed("esx"+n, "heddle port connect vm"+n+"/eth0 --switch dvs --port-group web --device tap0")
	}
	m.sendForged()
	had := m.standing()
	loss := m.foreseenForged(rejecting)
	if loss.Frames == 0 || loss.OfPort || loss.VLAN.String() != "10" || loss.PortGroup != "web" ||
		loss.Switch != "dvs" {
		t.Errorf("%+v", loss)
	}
	text := m.typed("controller1", "heddle definition apply -f next.yaml --dry-run")
	for _, want := range []string{"would drop: port esx1/vm1/eth0 (dvs/web), from 02:00:00:00:00:66 198.51.100.66, " +
		"VLAN 10: forged-transmit, ", "security: {forgedTransmits: accept} at port group web of switch dvs"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if now := m.standing(); now != had {
		t.Errorf("a dry run changes what hosts have: before\n%s\nnow\n%s", had, now)
	}
	_, err := m.hosts["esx1"].service().Foresee(t.Context(), api.Foresee{Base: make([]byte, sha256.Size)})
	if err == nil || !strings.Contains(err.Error(), "another version of the definition active") {
		t.Errorf("asked about a definition that it does not have, the host says: %v", err)
	}

	esx1 := m.hosts["esx1"]
	if n := esx1.drops("vm1/eth0", "forged-transmit"); n != 0 {
		t.Fatalf("%d frames were dropped before", n)
	}
	m.controller.Define(rejecting)
	if pings(m.guests["vm1"], "198.51.100.2") || esx1.drops("vm1/eth0", "forged-transmit") == 0 {
		t.Error("the kernel lets through what was foreseen to be dropped")
	}
	m.typed("esx3", "systemctl stop heddle")
	if out := m.foresees(accepting); len(out.Unasked) != 1 || out.Unasked[0].Host != "esx3" || out.Hosts != 2 {
		t.Errorf("with esx3 away: %d hosts answer, these do not: %+v", out.Hosts, out.Unasked)
	}
}

// sendForged makes vm1 send with a second MAC, until vm2 answers it.
func (m *threeHosts) sendForged() {
	m.t.Helper()
	a, b := m.guests["vm1"], m.guests["vm2"]
	run(m.t, a, "ip link add mv0 link eth0 address 02:00:00:00:00:66 type macvlan mode bridge")
	run(m.t, a, "ip addr add 198.51.100.66/32 dev mv0")
	run(m.t, a, "ip link set mv0 up")
	run(m.t, a, "ip route add 198.51.100.2/32 dev mv0 src 198.51.100.66")
	run(m.t, b, "ip neigh replace 198.51.100.66 lladdr 02:00:00:00:00:66 dev eth0 nud permanent")
	m.hosts["esx1"].await("vm2 answers vm1", func() bool { return pings(a, "198.51.100.2") })
}

// foresees is what a dry run says of that definition.
func (m *threeHosts) foresees(text string) *api.FleetForeseen {
	m.t.Helper()
	out, err := m.controller.Defines(api.Define{File: "next.yaml", Content: text, DryRun: true})
	if err != nil {
		m.t.Fatal(err)
	}
	if out.Foreseen == nil {
		m.t.Fatal("the dry run does not say what would be dropped")
	}
	return out.Foreseen
}

// foreseenForged waits until a dry run names what vm1 sends with its second MAC. It may name nothing else.
func (m *threeHosts) foreseenForged(text string) (loss diagnose.Loss) {
	m.t.Helper()
	m.hosts["esx1"].await("the dry run names what would be dropped", func() bool {
		out := m.foresees(text)
		if out.Hosts != 3 || len(out.Unasked) > 0 {
			m.t.Fatalf("%d hosts answer, these do not: %+v", out.Hosts, out.Unasked)
		}
		for _, l := range out.Losses {
			loss = l.Loss
			if l.Host != "esx1" || loss.Port != "vm1/eth0" || loss.MAC.String() != "02:00:00:00:00:66" ||
				loss.Cause.Reason != "forged-transmit" {
				m.t.Fatalf("also: %+v", l)
			}
			if loss.Address.String() == "198.51.100.66" {
				return true
			}
		}
		return false
	})
	return loss
}

// service is the agent's API.
func (h *host) service() *api.Client {
	return api.NewClient(filepath.Join(h.dir, "run", h.name+".sock"))
}

// standing sums up what the hosts have: the definition that is active, its objects as they are on disk, the
// configuration that is in force, and the tables of the kernel.
func (m *threeHosts) standing() string {
	m.t.Helper()
	var out strings.Builder
	for _, name := range []string{"esx1", "esx2", "esx3"} {
		h := m.hosts[name]
		c, err := h.service().Membership(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		store, err := state.Open(filepath.Join(h.dir, "state", h.name))
		if err != nil {
			m.t.Fatal(err)
		}
		kept, err := store.Load()
		if err != nil || kept.Slice == nil || len(kept.Slice.Objects) == 0 {
			m.t.Fatalf("%s keeps no definition: %v", name, err)
		}
		fmt.Fprintln(&out, name, c.Epoch, c.Revision, kept.Slice, h.must("config", "show"), h.inKernel())
	}
	return out.String()
}
