package vsphere

import (
	"fmt"
	"strings"

	"heddle/internal/spec"
)

// mostMembers is how many uplinks a LAG may have.
const mostMembers = 32

// lag adds a LAG. Its ports in vSphere become uplinks of their own, as which the hosts' cards are its members.
func (s *translated) lag(g *lacpGroup) {
	a := s.part("LAG", g.Name)
	members := g.UplinkName
	if len(members) == 0 {
		for i := range min(max(g.UplinkNum, 0), mostMembers) {
			members = append(members, fmt.Sprintf("%s-%d", g.Name, i))
		}
	}
	if len(members) == 0 || len(members) > mostMembers {
		a.absent("LAG", fmt.Sprintf("%d ports", max(len(members), g.UplinkNum)), "a LAG has 1 to 32 uplinks: add "+
			"it to lags by hand")
		return
	}
	name := s.uplinks.add(g.Name)
	s.renamed(a, g.Name, name)
	// Without LACP of the peer ESXi keeps links in use as stand-alone ones (Broadcom KB 439174), as the default does
	// with one of them.
	to := spec.LAG{Name: name, Hash: lagHash(a, g.LoadbalanceAlgorithm)}
	if strings.EqualFold(g.Mode, "passive") {
		to.Mode = spec.LACPPassive
	}
	if strings.EqualFold(g.TimeoutMode, "fast") {
		to.Timeout = spec.LACPFast
	}
	for _, m := range members {
		u := spec.Uplink{Name: s.uplinks.add(m)}
		if g.VLAN != nil {
			u.VLANs, _ = ranges(g.VLAN.VlanID)
		}
		if g.Ipfix != nil && g.Ipfix.IpfixEnabled {
			u.Monitoring.IPFIX = ptr(true)
		}
		s.to.Uplinks = append(s.to.Uplinks, u)
		to.Uplinks = append(to.Uplinks, u.Name)
	}
	s.to.LAGs = append(s.to.LAGs, to)
}

// lagHash is the hash nearest to an algorithm. Heddle's take source and destination alike.
func lagHash(a about, algorithm string) spec.LAGHash {
	exact := map[string]spec.LAGHash{"srcDestMac": spec.HashMAC, "srcDestIp": spec.HashIP,
		"srcDestIpVlan": spec.HashIPVLAN, "srcDestIpTcpUdpPort": spec.HashIPPort,
		"srcDestIpTcpUdpPortVlan": spec.HashIPPortVLAN, "": ""}
	if h, ok := exact[algorithm]; ok {
		return h
	}
	near, word := spec.HashIPPortVLAN, strings.ToLower(algorithm)
	switch {
	case strings.Contains(word, "mac"):
		near = spec.HashMAC
	case strings.Contains(word, "port") && strings.Contains(word, "vlan"):
	case strings.Contains(word, "tcpudpport"):
		near = spec.HashIPPort
	case strings.Contains(word, "ip") && strings.Contains(word, "vlan"):
		near = spec.HashIPVLAN
	case strings.Contains(word, "ip"):
		near = spec.HashIP
	}
	a.changed("load balancing of the LAG", algorithm, "the hash is "+string(near)+", of source and destination")
	return near
}

func (s *translated) isLAG(name string) bool {
	for i := range s.to.LAGs {
		if s.to.LAGs[i].Name == name {
			return true
		}
	}
	return false
}

func ptr[T any](v T) *T { return &v }
