package adapters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/report"
)

// Name is the experiment's name, Title what it shows.
const (
	Name  = "guest-adapters"
	Title = "one TCP stream by a guest's adapter, its queues, offloads and MTU (real traffic, emulated guests)"
)

// Options say how the experiment runs.
type Options struct {
	// RunDir and Program are those of lab.Options; Program also sends and receives.
	RunDir, Program string
	// Quick measures fewer rounds, and those shorter.
	Quick bool
	// Rows selects adapters; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// adapter is a model of network card with a number of queues.
type adapter struct {
	name   string
	nic    qemu.NIC
	queues int
}

func adapters() []adapter {
	return []adapter{{"virtio-net", qemu.VirtioNet, 1}, {"virtio-net-2-queues", qemu.VirtioNet, 2},
		{"e1000e", qemu.E1000E, 1}, {"vmxnet3", qemu.VMXNet3, 1}}
}

func nameOf(a adapter) string { return a.name }

// RowNames are the names of the experiment's rows: the adapters.
func RowNames() []string { return experiment.RowNames(adapters(), nameOf) }

// Check says whether the rows selected exist.
func (o Options) Check() error {
	_, err := o.effort()
	return err
}

// effort is how much is measured.
type effort struct {
	adapters []adapter
	mtus     []int
	rounds   int
	// Each measurement lasts for duration, and begins after warmup.
	duration, warmup time.Duration
}

func (o Options) effort() (effort, error) {
	e := effort{adapters: adapters(), mtus: []int{1500, 9000}, rounds: 5, duration: time.Second,
		warmup: 300 * time.Millisecond}
	if o.Quick {
		e.rounds, e.duration, e.warmup = 2, 500*time.Millisecond, 200*time.Millisecond
	}
	if len(o.Rows) == 0 {
		return e, nil
	}
	list, err := experiment.Pick(Name, e.adapters, nameOf, o.Rows)
	e.adapters = list
	return e, err
}

// setting is a row: an adapter with its offloads and its MTU.
type setting struct {
	adapter  string
	offloads bool
	mtu      int
}

func (s setting) String() string {
	return fmt.Sprintf("%s, offloads %s, MTU %d", s.adapter, onOff(s.offloads), s.mtu)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// direction is who sends.
type direction uint8

const (
	sends    direction = iota // the guest
	receives                  // the guest, from a namespace behind another port
)

// sample is one measurement.
type sample struct {
	bitsPerSecond float64
	// perFrame is how many bytes a frame had that the switch took from the sender.
	perFrame float64
}

// silence is a setting and direction in which nothing was carried.
type silence struct {
	setting
	direction
}

// measured is what was found.
type measured struct {
	effort
	samples map[setting][2][]sample // by direction
	// fixed are the offloads that a guest's driver does not let go, by adapter.
	fixed map[string][]string
	// silent counts the rounds in which nothing was carried.
	silent map[silence]int
	// kernel is that of the guests.
	kernel string
}

// settings are the rows, in the order of the table.
func (e effort) settings() (all []setting) {
	for _, a := range e.adapters {
		for _, mtu := range e.mtus {
			for _, on := range []bool{true, false} {
				all = append(all, setting{a.name, on, mtu})
			}
		}
	}
	return all
}

// Run measures and returns the result. It leaves nothing behind, also when ctx ends on the way.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	m, err := o.run(ctx)
	if err != nil {
		return nil, err
	}
	return m.report(), nil
}

func (o Options) run(ctx context.Context) (*measured, error) {
	e, err := o.effort()
	if err != nil {
		return nil, err
	}
	return o.runWith(ctx, e)
}

func (o Options) runWith(ctx context.Context, e effort) (_ *measured, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r, err := build(ctx, o, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.measure(ctx, o.Progress)
}
