package hostdev

import (
	"errors"
	"fmt"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// Offload is a feature of a device that changes or drops frames, by the kernel's name (as "ethtool -k" shows it, or its
// long form).
type Offload string

// The offloads that matter to a switch.
const (
	// LRO is large-receive-offload: it merges segments so that they cannot be separated again.
	LRO Offload = "rx-lro"
	// VLANFilter and VLANFilterAD drop tagged frames (802.1Q, 802.1ad) of VLANs that the host has no interface for.
	VLANFilter   Offload = "rx-vlan-filter"
	VLANFilterAD Offload = "rx-vlan-stag-filter"
)

// OffloadState says whether an offload is on, and whether that can be changed.
type OffloadState struct{ On, Fixed bool }

// Offloads returns the state of a device's offloads; one that the kernel does not know is missing.
func (h *Host) Offloads(d Device) (map[Offload]OffloadState, error) {
	all, err := h.eth.FeaturesWithState(d.Name)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the offloads of device %s: %w", d.Name, err)
	}
	found := map[Offload]OffloadState{}
	for _, o := range []Offload{LRO, VLANFilter, VLANFilterAD} {
		if s, ok := all[string(o)]; ok {
			found[o] = OffloadState{On: s.Active, Fixed: s.NeverChanged || !s.Available}
		}
	}
	return found, nil
}

// SetOffload switches an offload on or off. A driver may refuse silently: Offloads shows the result.
func (h *Host) SetOffload(d Device, o Offload, on bool) error {
	if err := h.eth.Change(d.Name, map[string]bool{string(o): on}); err != nil {
		return fmt.Errorf("set %s of device %s: %w", o, d.Name, err)
	}
	return nil
}

// openEthtool opens the socket for hardware settings, in the namespace of the calling thread.
func openEthtool() (*ethtool.Ethtool, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open a socket for device settings: %w", err)
	}
	return e, nil
}
