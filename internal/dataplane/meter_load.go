package dataplane

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"heddle/internal/abi"
)

// Numbers of fast slots for flows: a total for the host, but at least a minimum for each CPU.
const (
	placesOfHost = 1 << 16
	fewestPlaces = 1 << 10 // per CPU
)

// placesOf returns how many fast slots each CPU of a host with this many CPUs has: a power of two.
func placesOf(cpus int) uint32 {
	n := uint32(abi.FlowPlaces)
	for n > fewestPlaces && n*uint32(cpus) > placesOfHost {
		n /= 2
	}
	return n
}

// fit adapts a program to this host: its clock, and its tables of flow tables.
func fit(spec *ebpf.CollectionSpec, ticksPerSecond uint64) error {
	cpus := ebpf.MustPossibleCPU()
	return errors.Join(spec.Variables["ticks_per_second"].Set(ticksPerSecond), sizeMeter(spec, cpus, placesOf(cpus)))
}

// sizeMeter sets the sizes of a program's flow tables for the number of CPUs and the number of fast slots of each, a
// power of two.
func sizeMeter(spec *ebpf.CollectionSpec, cpus int, places uint32) error {
	for _, name := range []string{"flows", "wide_flows", "flow_places"} {
		spec.Maps[name].MaxEntries = 2 * uint32(cpus)
	}
	var mask uint32 // setPlaces may have set fewer
	if err := spec.Variables["place_mask"].Get(&mask); err != nil {
		return err
	}
	return errors.Join(sizePlaces(spec.Maps["flow_places"].InnerMap, places), spec.Variables["place_cells"].Set(places),
		spec.Variables["place_mask"].Set(min(mask, places-1)), spec.Variables["meter_cpus"].Set(uint32(cpus)))
}

// sizePlaces gives the prototype of the CPUs' tables of fast slots its real size, and corrects its type (BTF)
// accordingly.
func sizePlaces(inner *ebpf.MapSpec, places uint32) error {
	value, ok := btf.Copy(inner.Value).(*btf.Array) // of one
	if !ok {
		return fmt.Errorf("the program's places are a %T", inner.Value)
	}
	t, ok := value.Type.(*btf.Struct)
	if !ok || len(t.Members) == 0 {
		return fmt.Errorf("the program's places are of a %T", value.Type)
	}
	words, ok := t.Members[len(t.Members)-1].Type.(*btf.Array)
	if !ok {
		return fmt.Errorf("the program's places end with a %T", t.Members[len(t.Members)-1].Type)
	}
	inner.ValueSize = uint32(placesSize(places))
	words.Nelems, t.Size, inner.Value = uint32((placesSize(places)-firstCell)/8), inner.ValueSize, value
	return nil
}

// setPlaces sets how many of a CPU's fast slots flows may use (a power of two, at most all of them), and how many
// misses in a row make a slot change hands.
func setPlaces(spec *ebpf.CollectionSpec, n uint32, patience uint32) error {
	return errors.Join(spec.Variables["place_mask"].Set(n-1), spec.Variables["place_patience"].Set(patience))
}
