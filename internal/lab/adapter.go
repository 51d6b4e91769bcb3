package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"heddle/internal/lab/multiqueue"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
)

// AdapterSpec is what the process that carries the frames of one VM's adapter with queues must know; it is passed on
// its command line as JSON.
type AdapterSpec struct {
	// Device is the tap in the namespace of the process, VM the namespace of the VM, whose tap is eth0.
	Device string `json:"device"`
	VM     string `json:"vm"`
	Queues int    `json:"queues"`
	// Counts is the file in which it counts the frames of each queue.
	Counts string `json:"counts"`
}

// adapterNice is the priority of these processes: they are a part of the VM, and below the kernel's own threads.
const adapterNice = 5

// makeQueues makes the two taps of a VM's adapter with queues.
func (l *Lab) makeQueues(v *scenario.VM) error {
	return multiqueue.Make(multiqueue.End{NS: l.ns[v.Host], Device: l.Scenario.DeviceOf(v)},
		multiqueue.End{NS: l.ns[v.Name], Device: guestDevice}, v.Queues, v.MTU, hardware(v.MAC))
}

// startAdapters starts, for every VM that is a namespace with queues, a process in its host's namespace that carries
// frames as long as the lab exists.
func (l *Lab) startAdapters(context.Context) error {
	for i := range l.Scenario.VMs {
		v := &l.Scenario.VMs[i]
		if v.Kind == scenario.QEMU || v.Queues == 0 {
			continue
		}
		text, err := json.Marshal(AdapterSpec{Device: l.Scenario.DeviceOf(v), VM: l.ns[v.Name].Name, Queues: v.Queues,
			Counts: l.queuesFile(v.Name)})
		if err != nil {
			return err
		}
		p, err := l.start(l.ns[v.Host], filepath.Join(l.Dir, "log", v.Name+".log"), adapterNice, l.opts.Program,
			"lab", "adapter", string(text))
		if err != nil {
			return err
		}
		l.processes[v.Name] = p
	}
	return nil
}

func (r *Record) queuesFile(vm string) string { return filepath.Join(r.Dir, "log", vm+".queues") }

// Queues are the frames that have passed between a VM and its host, by queue of the VM's adapter. A VM without queues,
// or one under QEMU, is an error.
func (r *Record) Queues(vm string) ([]multiqueue.Counts, error) {
	all, err := multiqueue.ReadCounts(r.queuesFile(vm))
	if err != nil {
		return nil, fmt.Errorf("read the queues of VM %q: %w", vm, err)
	}
	return all, nil
}

// KeepAdapter carries the frames of a VM's adapter until ctx ends. It is all that the process does which startAdapters
// starts, in the host's namespace.
func KeepAdapter(ctx context.Context, a AdapterSpec) error {
	vm, err := netns.Open(a.VM)
	if err != nil {
		return err
	}
	return multiqueue.Carry(ctx, multiqueue.End{Device: a.Device}, multiqueue.End{NS: vm, Device: guestDevice},
		a.Queues, a.Counts)
}
