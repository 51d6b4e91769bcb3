package dataplane

import (
	"errors"

	"github.com/cilium/ebpf"
)

// sizeMeter makes a program's tables of flow tables right for a host of so many CPUs.
func sizeMeter(spec *ebpf.CollectionSpec, cpus int) error {
	for _, name := range []string{"flows", "wide_flows", "flow_places"} {
		spec.Maps[name].MaxEntries = 2 * uint32(cpus)
	}
	return spec.Variables["meter_cpus"].Set(uint32(cpus))
}

// setPlaces has flows share so many places of a CPU, a power of two, and gives one up to a flow that so many frames of other flows have asked
// for it before.
func setPlaces(spec *ebpf.CollectionSpec, n uint32, patience uint32) error {
	return errors.Join(spec.Variables["place_mask"].Set(n-1), spec.Variables["place_patience"].Set(patience))
}
