package dataplane

import "github.com/cilium/ebpf"

// sizeMeter makes a program's tables of flow tables right for a host of so many CPUs.
func sizeMeter(spec *ebpf.CollectionSpec, cpus int) error {
	for _, name := range []string{"flows", "wide_flows"} {
		spec.Maps[name].MaxEntries = 2 * uint32(cpus)
	}
	return spec.Variables["meter_cpus"].Set(uint32(cpus))
}
