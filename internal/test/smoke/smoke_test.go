package smoke

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// smokeConfig has two ports in an access VLAN, one of which learns what is behind it, a trunk and an uplink.
const smokeConfig = `
switches:
  - name: lab
    kind: distributed
    uplinks: [{name: uplink1, device: up0}]
    portGroups:
      - {name: web, vlan: {access: %d}}
      - name: nested
        vlan: {access: 10}
        security: {forgedTransmits: accept, macLearning: {enabled: true}}
      - {name: trunk, vlan: {trunk: ["10", "20"]}}
ports:
  - {name: a, switch: lab, portGroup: web, device: port-a, mac: "02:00:00:00:00:01"}
  - {name: b, switch: lab, portGroup: nested, device: port-b, mac: "02:00:00:00:00:02"}
  - {name: c, switch: lab, portGroup: trunk, device: port-c, mac: "02:00:00:00:00:03"}
`

// rig is the host of smokeConfig with its cables' other ends.
type rig struct {
	*host
	a, b, c, wire *cable.End
	sent          int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	h := newHost(t, testkit.NS(t, "host"))
	r := &rig{host: h, a: h.Plug("port-a", cable.MAC(1)), b: h.Plug("port-b", cable.MAC(2)),
		c: h.Plug("port-c", cable.MAC(3)), wire: h.Plug("up0", cable.MAC(99))}
	h.Start(fmt.Sprintf(smokeConfig, 10))
	h.Up("a", "b", "c", "uplink1")
	return r
}

// fromA sends a frame of a's owner, with a text of its own, so that it is not taken for an earlier one; it gives the
// text.
func (r *rig) fromA(to, from [6]byte) (text string) {
	r.T.Helper()
	r.sent++
	text = fmt.Sprintf("heddle smoke %d", r.sent)
	r.a.Send(cable.Frame(to, from, 0, text))
	return text
}

// broadcast has a send to all and expects the frame at the others, in VLAN v.
func (r *rig) broadcast(v uint16, inB bool) {
	r.T.Helper()
	all := cable.Broadcast()
	text := r.fromA(all, cable.MAC(1))
	r.c.Expect(cable.Frame(all, cable.MAC(1), v, text), "S26: to a trunk with a tag")
	r.wire.Expect(cable.Frame(all, cable.MAC(1), v, text), "S26: to the uplink with a tag")
	if inB {
		r.b.Expect(cable.Frame(all, cable.MAC(1), 0, text), "S22: to an access port without a tag")
	} else {
		r.b.Refuse(cable.Frame(all, cable.MAC(1), 0, text), "S22: another VLAN")
	}
}

// TestS1_S12_S22_S26_TheProgramFromStartToDown: programs load, VLANs hold, a forged source is refused, what is behind a
// port is learned and survives the agent's death, counters count, the plan changes, and nothing is left.
func TestS1_S12_S22_S26_TheProgramFromStartToDown(t *testing.T) {
	r := newRig(t)
	r.broadcast(10, true)
	r.forged()
	r.learn()
	r.survive()
	r.Configure(fmt.Sprintf(smokeConfig, 20))
	r.broadcast(20, false)
	r.Configure(fmt.Sprintf(smokeConfig, 10))
	r.broadcast(10, true)
	r.down()
}

// forged: a frame with another source goes nowhere.
func (r *rig) forged() {
	r.T.Helper()
	text := r.fromA(cable.Broadcast(), cable.MAC(66))
	r.Await("S1: the forged frame is counted", func() bool { return r.Counter("a", "forged-transmit") == 1 })
	r.b.Refuse(cable.Frame(cable.Broadcast(), cable.MAC(66), 0, text), "S1: a forged source")
}

// learn: a nested machine behind b is found by its own frames; nobody else gets what is for it.
func (r *rig) learn() {
	r.T.Helper()
	r.b.Send(cable.Frame(cable.Broadcast(), cable.MAC(77), 0, "nested machine"))
	r.c.Expect(cable.Frame(cable.Broadcast(), cable.MAC(77), 10, "nested machine"), "S26: a nested machine's broadcast")
	r.Await("S12: the nested machine's address is learned", r.knowsNested)
	r.toNested()
}

func (r *rig) knowsNested() bool {
	r.T.Helper()
	macs, err := r.MACs(r.T.Context())
	if err != nil {
		r.T.Fatal(err)
	}
	for _, m := range macs {
		if m.MAC == "02:00:00:00:00:4d" && m.Port == "b" && m.Kind == "learned" {
			return true
		}
	}
	return false
}

// toNested: a frame for the nested machine reaches b and not c. The broadcast after it shows that c has had the time.
func (r *rig) toNested() {
	r.T.Helper()
	text := r.fromA(cable.MAC(77), cable.MAC(1))
	r.b.Expect(cable.Frame(cable.MAC(77), cable.MAC(1), 0, text), "S12: to the learned address")
	marker := cable.Frame(cable.MAC(3), cable.MAC(1), 10, r.fromA(cable.MAC(3), cable.MAC(1)))
	if got := r.c.Until(marker); len(got) != 0 {
		r.T.Errorf("S12: c received %x, which is for a learned address elsewhere", got)
	}
}

// survive: killed, the agent leaves the switch working, and a new one finds addresses and counters.
func (r *rig) survive() {
	r.T.Helper()
	r.End(syscall.SIGKILL)
	r.toNested()
	r.Start("")
	r.Up("a", "b", "c", "uplink1")
	if !r.knowsNested() {
		r.T.Error("a learned address is gone with the agent")
	}
	if in := r.Counter("a", "packetsInUnicast") + r.Counter("a", "packetsInBroadcast"); in != uint64(r.sent) {
		r.T.Errorf("S80: a has counted %d frames, its owner sent %d", in, r.sent)
	}
	r.toNested()
}

// down: nothing of Heddle is left, and the uplink's device is as it was.
func (r *rig) down() {
	r.T.Helper()
	if err := r.Heddle("down", "--purge"); err != nil {
		r.T.Fatal(err)
	}
	r.Ended()
	if left, _ := filepath.Glob(filepath.Join(r.Dir, "run", "bpf", "*")); len(left) != 0 {
		r.T.Errorf("left in the kernel: %v", left)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "state", "default")); !os.IsNotExist(err) {
		r.T.Errorf("the state is still there: %v", err)
	}
	err := r.Do(func() error {
		for _, name := range []string{"port-a", "up0"} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if l.Attrs().Promisc != 0 {
				r.T.Errorf("%s is still promiscuous", name)
			}
			there, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: ebpf.AttachTCXIngress})
			if err != nil {
				return err
			}
			if n := len(there.Programs); n != 0 {
				r.T.Errorf("%s still has %d programs", name, n)
			}
		}
		return nil
	})
	if err != nil {
		r.T.Error(err)
	}
}
