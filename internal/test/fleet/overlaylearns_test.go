package fleet

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// nestedText is segmentText with nested guests behind the ports.
var nestedText = strings.Replace(segmentText, "overlay: {vni: 5000}}", "overlay: {vni: 5000}, security: "+
	"{forgedTransmits: accept, macLearning: {enabled: true, limit: 4096}}}", 1)

// newOverlayFleet is hosts that controllers give one overlay segment, with a guest each.
func newOverlayFleet(t *testing.T, hosts int, text string) *fleet {
	t.Helper()
	f := newFleetSized(t, hosts, ownConfig, "own1", "own2")
	f.routed()
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(text); len(out.Hosts) != hosts || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
	}
	for n, h := range f.hosts {
		h.Await("the host knows where the others' guests are", func() bool {
			all := h.located()
			for m := range f.hosts {
				if _, known := all[fleetMAC(m, 3)]; m != n && !known {
					return false
				}
			}
			return true
		})
	}
	return f
}

// locations is the kernel's table of where the MACs of other hosts are; nil where the host has none yet.
func (h *host) locations() *ebpf.Map { h.T.Helper(); return h.overlayTable("locations") }

// overlayTable is a table of the tunnels' programs; nil where the host has none yet.
func (h *host) overlayTable(name string) *ebpf.Map {
	h.T.Helper()
	var m *ebpf.Map
	err := filepath.WalkDir(filepath.Join(h.Dir, "run"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == name && m == nil {
			m, err = ebpf.LoadPinnedMap(path, nil)
		}
		return err
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return m
}

// located is where the host's kernel has the MACs of other hosts.
func (h *host) located() map[[6]byte]abi.Location {
	h.T.Helper()
	m := h.locations()
	if m == nil {
		return nil
	}
	defer m.Close()
	said, shown := entries(h.T, m)
	for mac, l := range shown {
		if said[mac].Source != abi.LocationStatic {
			said[mac] = l
		}
	}
	return said
}

// announced are the locations that controllers have named, whatever frames show.
func (h *host) announced() map[[6]byte]abi.Location {
	h.T.Helper()
	m := h.locations()
	if m == nil {
		return nil
	}
	defer m.Close()
	said, _ := entries(h.T, m)
	return said
}

// entries are the locations by MAC: those that the file or the controllers say for whole VNIs, and those that frames
// show in a segment, which count more than the controllers' where the tunnel learns.
func entries(t *testing.T, m *ebpf.Map) (said, shown map[[6]byte]abi.Location) {
	t.Helper()
	said, shown = map[[6]byte]abi.Location{}, map[[6]byte]abi.Location{}
	var key abi.LocationKey
	var value abi.Location
	each := m.Iterate()
	for each.Next(&key, &value) {
		if key.Whole != 0 {
			said[key.MAC] = value
		} else {
			shown[key.MAC] = value
		}
	}
	if err := each.Err(); err != nil {
		t.Fatal(err)
	}
	return said, shown
}

// inner is the MAC of a nested guest.
func inner(n int) (mac [6]byte) {
	mac[0] = 2
	binary.BigEndian.PutUint32(mac[2:], uint32(1<<24+n))
	return mac
}

// broadcastFrom has a guest send a broadcast from a MAC.
func (f *fleet) broadcastFrom(guest string, mac [6]byte) {
	f.guests[guest].Send(cable.Frame(cable.Broadcast(), mac, 0, "nested"))
}

// TestS84_WhatIsLearnedBehindAPortIsKnownToTheSpan: MACs of nested guests are known to the other hosts of the segment
// the moment that they are learned, one by one and many at once; those that move and those that are forgotten follow.
func TestS84_WhatIsLearnedBehindAPortIsKnownToTheSpan(t *testing.T) {
	testkit.Long(t, "learns many addresses; TestS100_S105_APortMovesOnAnOverlaySegment has what controllers tell")
	t.Parallel()
	f := newOverlayFleet(t, 2, nestedText)
	far := f.hosts[1].locations()
	defer far.Close()
	knows := func(n int) bool { return f.hosts[1].knownIn(far, inner(n)) }
	const singles = 220
	var times []time.Duration
	for n := range singles {
		begin := time.Now()
		f.broadcastFrom("p-web@0", inner(n))
		for !knows(n) {
			if time.Now().After(begin.Add(realhost.Patience)) {
				t.Fatalf("MAC %d is not known to the other host", n)
			}
			time.Sleep(time.Millisecond)
		}
		times = append(times, time.Since(begin))
		if pause := 50*time.Millisecond - times[n]; pause > 0 { // one port's reports are limited to 32 in a second
			time.Sleep(pause)
		}
	}
	slices.Sort(times)
	t.Logf("%d MACs one by one: known after %v in the median, p99 %v, at most %v", singles, times[singles/2],
		times[singles*99/100], times[singles-1])

	const many = 2000
	begin := time.Now()
	for n := range many {
		f.broadcastFrom("p-web@0", inner(singles+n))
	}
	sent := time.Since(begin)
	f.hosts[1].Await("all of many MACs are known", func() bool {
		said, _ := entries(t, far)
		return len(said) >= singles+many+1
	})
	t.Logf("%d MACs at once: sent within %v, known after %v", many, sent, time.Since(begin))

	f.nestedMoves(far, inner(0))
	for n := 1; n <= 4; n++ { // in a flood, in which the port's reports are left out
		for m := range 2 * abi.TellsPerSecond {
			f.broadcastFrom("p-web@0", inner(10_000+100*n+m))
		}
		f.nestedMoves(far, inner(n))
	}
	f.hosts[0].must("mac", "flush", "--all")
	f.hosts[1].Await("what is forgotten is withdrawn", func() bool { return !knows(1) && !knows(singles+1) })
}

// nestedMoves: a nested guest goes to the other host and back. Each host has it where it was heard last.
func (f *fleet) nestedMoves(far *ebpf.Map, mac [6]byte) {
	f.t.Helper()
	near := f.hosts[0].locations()
	defer near.Close()
	f.broadcastFrom("p-web@1", mac)
	f.hosts[0].Await("the MAC that went to the other host is located there", func() bool {
		return f.hosts[0].knownIn(near, mac)
	})
	f.hosts[0].Await("the host where it was has forgotten it", func() bool { return !f.hosts[0].learnedMAC(mac) })
	f.broadcastFrom("p-web@0", mac)
	f.hosts[1].Await("the MAC that came back is located there", func() bool { return f.hosts[1].knownIn(far, mac) })
	f.hosts[0].Await("it is not elsewhere any more", func() bool { return !f.hosts[0].knownIn(near, mac) })
}

// knownIn reports whether the controllers have said where a MAC is.
func (h *host) knownIn(m *ebpf.Map, mac [6]byte) bool {
	h.T.Helper()
	var key abi.LocationKey
	var value abi.Location
	if err := m.NextKey(nil, &key); err != nil {
		return false
	}
	key.MAC = mac
	return m.Lookup(&key, &value) == nil && value.Source == abi.LocationAnnounced
}

// learnedMAC reports whether a MAC is learned behind a port of the host.
func (h *host) learnedMAC(mac [6]byte) bool {
	h.T.Helper()
	all, err := h.MACs(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	for _, m := range all {
		if m.MAC == plan.MAC(mac).String() && m.Port == "p-web" {
			return true
		}
	}
	return false
}

// TestS105_AHostWithoutItsSavedFileKeepsTheOthers: an agent that finds nothing on disk of overlay segments, while no
// controller answers, goes on by what the kernel has.
func TestS105_AHostWithoutItsSavedFileKeepsTheOthers(t *testing.T) {
	testkit.Long(t, "TestS103_AFleetGoesOnWhileItsControllerIsAway has a host without a controller")
	t.Parallel()
	f := newOverlayFleet(t, 3, segmentText)
	stream := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	f.controller.End(syscall.SIGKILL)
	h := f.hosts[0]
	h.End(syscall.SIGKILL)
	saved := 0
	err := filepath.WalkDir(h.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "segments" && !strings.Contains(path, "/bpf/") {
			saved++
			return os.Remove(path)
		}
		return nil // what the agent removes meanwhile
	})
	if err != nil || saved != 1 {
		t.Fatalf("%d saved files were removed: %v", saved, err)
	}
	h.Start(fmt.Sprintf(ownConfig, 0, 0))
	h.Up("p-web", "tunnel")
	f.whole("while the agent starts without its file", stream)
	all := cable.Frame(cable.Broadcast(), fleetMAC(0, 3), 0, "to all, without the file")
	f.guests["p-web@0"].Send(all)
	for n := 1; n < 3; n++ {
		f.guests[fmt.Sprintf("p-web@%d", n)].Expect(all, "a host of before")
	}
	if l, ok := h.announced()[fleetMAC(2, 3)]; !ok || l.Source != abi.LocationAnnounced {
		t.Errorf("where the third host's guest is was forgotten: %+v", l)
	}
	f.controller.Start()
	f.connect(2, 4, "p-new", "web")
	h.Await("the controllers are heard again", func() bool {
		_, known := h.located()[fleetMAC(2, 4)]
		return known
	})
}
