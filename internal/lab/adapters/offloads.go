package adapters

import (
	"fmt"
	"slices"

	"github.com/safchain/ethtool"
)

// offloads are what an adapter does for its guest, by the kernel's names: checksums, cutting and joining segments.
func offloads() []string {
	return []string{
		"rx-checksum", "tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6", "tx-scatter-gather",
		"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp6-segmentation", "tx-generic-segmentation",
		"tx-udp-segmentation", "rx-gro", "rx-gro-hw", "rx-lro",
	}
}

// SetOffloads turns the offloads of a device on or off, and returns those of them that the driver does not let go: what
// stays on is part of what is measured, and is said.
func SetOffloads(device string, on bool) (fixed []string, err error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("open a socket for device settings: %w", err)
	}
	defer tool.Close()
	state, err := tool.FeaturesWithState(device)
	if err != nil {
		return nil, fmt.Errorf("read the offloads of %s: %w", device, err)
	}
	want := map[string]bool{}
	for _, name := range offloads() {
		if s, known := state[name]; known && s.Available && s.Active != on {
			want[name] = on
		}
	}
	if len(want) > 0 {
		if err := tool.Change(device, want); err != nil {
			return nil, fmt.Errorf("turn the offloads of %s %s: %w", device, onOff(on), err)
		}
	}
	after, err := tool.Features(device)
	if err != nil {
		return nil, fmt.Errorf("read the offloads of %s: %w", device, err)
	}
	for _, name := range offloads() {
		if !on && after[name] {
			fixed = append(fixed, name)
		}
	}
	slices.Sort(fixed)
	return fixed, nil
}
