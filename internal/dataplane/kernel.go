package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"heddle/internal/dataplane/compile"
	"heddle/internal/dataplane/idle"
)

// Kernel is a loaded dataplane. Its methods are for one goroutine.
type Kernel struct {
	dir      string
	log      *slog.Logger
	objects  vswitchObjects
	tables   *planTables
	slots    *compile.Slots
	register *register // of the slots, once the tables exist
	links    *links
	egress   *links
	hz       uint64
	gen      *generation
	from     []*generation // the generations whose content gen gets; nil once it is complete
	locator
	overlays *overlays // nil while no switch has had a tunnel
	captures *Captures
	flows    *Flows
	standIn  *capturingBuild        // the devices have the programs that look for it; nil while nothing is captured
	loaded   *idle.Place[*Recorder] // of dry runs
	bare     bool                   // no MAC is learned, and the active plan lets none be learned
	tweak    tweak
}

// tweak is what tests may change: the tables' sizes, and the step of an upgrade at which the process dies.
type tweak struct {
	spec func(*ebpf.CollectionSpec)
	step func(string) error
}

func (k *Kernel) step(name string) error {
	if k.tweak.step == nil {
		return nil
	}
	return k.tweak.step(name)
}

// Open loads the programs and creates or adopts the tables pinned in the directory. If those have another layout,
// because another version of the program made them, it makes new tables and copies the content of the others; if that
// is impossible, it returns an error and changes nothing. Attached devices continue with the old program until the
// first Change, which replaces the program of each device at one instant (K1).
func Open(o Options) (*Kernel, error) { return open(o, tweak{}) }

func open(o Options, t tweak) (*Kernel, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := Check(o.PinDir); err != nil {
		return nil, err
	}
	for _, dir := range []string{linkDir, egressDir} {
		if err := os.MkdirAll(filepath.Join(o.PinDir, dir), 0o700); err != nil {
			return nil, fmt.Errorf("create pin directory: %w", err)
		}
	}
	k := &Kernel{dir: o.PinDir, log: o.Log, slots: compile.NewSlots(), tweak: t,
		loaded: idle.NewPlace[*Recorder](keptFor)}
	k.captures, k.overlays = &Captures{kernel: k}, &overlays{kernel: k}
	k.locator = locator{k.overlays}
	if err := k.load(o.MACTable); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func (k *Kernel) load(macTable int) error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("lift memory limit for kernel tables: %w", err)
	}
	spec, err := loadVswitch()
	if err != nil {
		return fmt.Errorf("read built-in program: %w", err)
	}
	if k.tweak.spec != nil {
		k.tweak.spec(spec)
	}
	if k.hz, err = jiffiesPerSecond(spec.Copy()); err != nil {
		return err
	}
	if err := fit(spec, k.hz); err != nil {
		return err
	}
	for _, name := range privateMaps {
		spec.Maps[name].Pinning = ebpf.PinNone
	}
	delete(spec.Programs, "heddle_record")
	delete(spec.Programs, "heddle_record_egress")
	delete(spec.Programs, "heddle_bench")
	delete(spec.Programs, "heddle_ingress_or")
	delete(spec.Programs, "heddle_egress_or")
	for name, m := range spec.Maps {
		if pinned(name) {
			m.Pinning = ebpf.PinByName
		}
	}
	if err := k.openGeneration(spec, macTable); err != nil {
		return err
	}
	if err := assignLive(spec, &k.objects, k.gen.dir); err != nil {
		return err
	}
	if err := k.takeOver(); err != nil {
		return err
	}
	k.tables = newPlanTables(&k.objects.vswitchMaps)
	clock := &tickClock{hz: k.hz, read: func() (clocks, error) { return readClocks(k.objects.HeddleClocks) }}
	if k.flows, err = openFlows(&k.objects.vswitchMaps, placesOf(ebpf.MustPossibleCPU()), clock.wall,
		k.tables.grace.await); err != nil {
		return err
	}
	k.flows.step = k.step
	k.register = &register{Slots: k.slots, maps: &k.objects.vswitchMaps, flows: k.flows}
	if err := k.register.adopt(); err != nil {
		return err
	}
	k.links, err = adoptLinks(filepath.Join(k.dir, linkDir), ebpf.AttachTCXIngress, k.objects.HeddleIngress, k.log)
	if err != nil {
		return err
	}
	k.egress, err = adoptLinks(filepath.Join(k.dir, egressDir), ebpf.AttachTCXEgress, k.objects.HeddleEgress, k.log)
	if err != nil {
		return err
	}
	return k.overlays.adoptAll()
}

// privateMaps belong to dry runs and benchmarks; they are never shared between processes.
var privateMaps = []string{"packets", "asides", "meter_scratch", "record_control", "records", "bench_control",
	"bench_frames", "ingress_stand_in", "egress_stand_in"}

func pinned(name string) bool {
	if name[0] == '.' {
		return false
	}
	for _, p := range privateMaps {
		if p == name {
			return false
		}
	}
	return true
}

func assignLive(spec *ebpf.CollectionSpec, to *vswitchObjects, dir string) error {
	var live struct {
		vswitchMaps
		HeddleIngress *ebpf.Program `ebpf:"heddle_ingress"`
		HeddleEgress  *ebpf.Program `ebpf:"heddle_egress"`
		HeddleSweep   *ebpf.Program `ebpf:"heddle_sweep"`
		HeddleClocks  *ebpf.Program `ebpf:"heddle_clocks"`
		HeddleCarry   *ebpf.Program `ebpf:"heddle_carry"`
		HeddleForget  *ebpf.Program `ebpf:"heddle_forget"`
	}
	err := spec.LoadAndAssign(&live, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: dir}})
	if err != nil {
		return explainLoad(err)
	}
	to.vswitchMaps = live.vswitchMaps
	to.HeddleIngress, to.HeddleSweep, to.HeddleClocks = live.HeddleIngress, live.HeddleSweep, live.HeddleClocks
	to.HeddleCarry, to.HeddleEgress, to.HeddleForget = live.HeddleCarry, live.HeddleEgress, live.HeddleForget
	return nil
}

// Close closes this process's handles. Everything pinned continues to work.
func (k *Kernel) Close() error {
	errs := []error{k.flows.close(), k.tables.close(), k.captures.close(), k.gen.close(), closeGenerations(k.from),
		k.overlays.close(), k.loaded.Close()}
	for _, l := range []*links{k.links, k.egress} {
		if l != nil {
			errs = append(errs, l.close())
		}
	}
	for _, p := range []*ebpf.Program{k.objects.HeddleIngress, k.objects.HeddleEgress, k.objects.HeddleSweep,
		k.objects.HeddleClocks, k.objects.HeddleCarry, k.objects.HeddleForget} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if k.objects.Ports != nil {
		errs = append(errs, k.objects.vswitchMaps.Close())
	}
	return errors.Join(errs...)
}

// Remove removes everything of the instance from the kernel: it detaches the programs and removes the pins. It does not
// change the devices. It is no error if there is nothing. Detaching takes some 10 ms per device: progress, unless nil,
// is called with the number of devices that are left.
func Remove(pinDir string, progress func(left int)) error {
	if progress == nil {
		progress = func(int) {}
	}
	// Those of trunks come last: without them the switch program would put frames into wrong segments.
	for _, dir := range []string{egressDir, outDir, inDir, linkDir, trunkInDir, trunkOutDir} {
		l, err := adoptLinks(filepath.Join(pinDir, dir), ebpf.AttachNone, nil, slog.New(slog.DiscardHandler))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(l.detachAll(progress), l.close()); err != nil {
			return err
		}
	}
	return removePins(pinDir)
}

func removePins(pinDir string) error {
	entries, err := os.ReadDir(pinDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(pinDir, e.Name())))
	}
	return errors.Join(append(errs, os.Remove(pinDir))...)
}
