package plan

import (
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"heddle/internal/spec"
)

// Tunnel is a switch's way to the overlay segments of other hosts. It has an id among the switch's ports and uplinks,
// with a device and a Fact as they have.
type Tunnel struct {
	ID PortID `json:"id"`
	// Number is the tunnel's id on its host; ports, uplinks and tunnels share the numbers.
	Number uint32 `json:"number"`
	// Device is the name of the VXLAN device, which the agent makes and removes.
	Device      string           `json:"device"`
	Port        int              `json:"port"` // UDP
	Replication spec.Replication `json:"replication"`
	Learning    bool             `json:"learning"`
	// Hold is for how long the owner of an address is known after it was heard; 0 where the host does not answer for
	// stations of other hosts (S85).
	Hold       time.Duration    `json:"hold,omitzero"`
	Endpoints  []TunnelEndpoint `json:"endpoints"`
	Peers      []TunnelPeer     `json:"peers,omitzero"`
	Monitoring Monitoring       `json:"monitoring"`
}

// TunnelEndpoint is an outer address of this host, or where it has it from.
type TunnelEndpoint struct {
	Name string `json:"name"`
	// Address is the zero Addr where it is that of the host port or device, whatever it is now.
	Address  netip.Addr `json:"address,omitzero"`
	HostPort string     `json:"hostPort,omitzero"`
	Device   string     `json:"device,omitzero"`
}

// TunnelPeer is an endpoint of another host, from the file.
type TunnelPeer struct {
	Name    string       `json:"name"`
	Address netip.Addr   `json:"address"`
	Subnet  netip.Prefix `json:"subnet,omitzero"` // zero: the /24 or /64 of the address
	MACs    []TunnelMAC  `json:"macs,omitzero"`
}

// TunnelMAC is a MAC behind a peer.
type TunnelMAC struct {
	VNI uint32 `json:"vni"`
	MAC MAC    `json:"mac"`
}

// maxDeviceName is the kernel's limit of a device's name.
const maxDeviceName = 15

// TunnelDevice returns the name of a switch's VXLAN device: "vx-" and the switch's name, or a number made from it
// where that is too long or has signs that a device's name can't have.
func TunnelDevice(sw string) string {
	name := "vx-" + sw
	plain := !slices.ContainsFunc([]byte(sw), func(c byte) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if plain && len(name) <= maxDeviceName {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(sw))
	return "vx-" + strconv.FormatUint(uint64(h.Sum32()), 36)
}

// resolveTunnel makes the plan of a valid tunnel, nil for none.
func resolveTunnel(s *spec.Switch) *Tunnel {
	if s.Tunnel == nil {
		return nil
	}
	t := &Tunnel{ID: PortID{s.Name, spec.TunnelName}, Device: TunnelDevice(s.Name), Port: s.Tunnel.ActualPort(),
		Replication: s.Tunnel.ActualReplication(), Learning: or(s.Tunnel.Learning, true),
		Hold:       s.Tunnel.Neighbours.ActualHold(),
		Monitoring: uplinkMonitoring(s, s.Tunnel.Monitoring)}
	for i := range s.Tunnel.Endpoints {
		e := &s.Tunnel.Endpoints[i]
		a, _ := netip.ParseAddr(e.Address)
		t.Endpoints = append(t.Endpoints, TunnelEndpoint{Name: e.Label(), Address: a, HostPort: e.HostPort,
			Device: e.Device})
	}
	for i := range s.Tunnel.Peers {
		p := &s.Tunnel.Peers[i]
		a, _ := netip.ParseAddr(p.Address)
		subnet, _ := netip.ParsePrefix(p.Subnet)
		peer := TunnelPeer{Name: p.Label(), Address: a, Subnet: subnet}
		for _, m := range p.MACs {
			if mac, err := ParseMAC(m.MAC); err == nil {
				peer.MACs = append(peer.MACs, TunnelMAC{uint32(m.VNI), mac})
			}
		}
		t.Peers = append(t.Peers, peer)
	}
	return t
}

// VNIs returns the overlay segments in which the switch has ports, sorted.
func (s *Switch) VNIs() []uint32 {
	var all []uint32
	seen := map[uint32]bool{0: true}
	for _, p := range s.Ports {
		if !seen[p.VNI] {
			seen[p.VNI] = true
			all = append(all, p.VNI)
		}
	}
	slices.Sort(all)
	return all
}
