package msgsize

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"heddle/internal/lab/experiment"
)

// Name is the experiment's name, Title what it shows.
const (
	Name  = "message-size"
	Title = "TCP throughput by message size, from VM to VM and through a virtual firewall (real traffic only)"
)

// Options say how the experiment runs.
type Options struct {
	// RunDir and Program are those of lab.Options; Program also sends and receives.
	RunDir, Program string
	// Quick measures fewer sizes, only at an MTU of 1500, and fewer rounds of the same length.
	Quick bool
	// Rows selects message sizes, in bytes; empty: all, or those of a quick run.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// effort is how much is measured.
type effort struct {
	sizes    []int
	mtus     []int
	rounds   int
	duration time.Duration // of each measurement
	warmup   time.Duration
}

// effort is chosen so that everything takes some five minutes, and with Quick less than one.
func (o Options) effort() effort {
	e := effort{mtus: []int{1500, 9000}, rounds: 6, duration: 450 * time.Millisecond, warmup: 100 * time.Millisecond}
	for _, f := range article() {
		e.sizes = append(e.sizes, f.size)
	}
	if o.Quick {
		e.sizes, e.mtus, e.rounds = []int{1, 64, 1024, 65536}, e.mtus[:1], 4
	}
	return e
}

// Check says whether the rows selected exist.
func (o Options) Check() error {
	_, err := o.selected()
	return err
}

// selected is the effort with the selected sizes.
func (o Options) selected() (effort, error) {
	e := o.effort()
	if len(o.Rows) == 0 {
		return e, nil
	}
	list, err := experiment.Pick(Name, article(), func(f figures) string { return strconv.Itoa(f.size) }, o.Rows)
	if err != nil {
		return e, fmt.Errorf("%w (message sizes in bytes)", err)
	}
	e.sizes = nil
	for _, f := range list {
		e.sizes = append(e.sizes, f.size)
	}
	return e, nil
}

// path is the path from one VM to the other.
type path uint8

const (
	direct   path = iota // one port group
	firewall             // two port groups, and the firewall has an adapter in each
)

// key is the path in the names of values, String for people.
func (p path) key() string { return [...]string{"direct", "firewall"}[p] }

func (p path) String() string { return [...]string{"VM-VM", "VM-FW-VM"}[p] }

// short is the path in headings, where each path has its own block of the table.
func (p path) short() string { return [...]string{"VM-VM", "FW"}[p] }

// guests is the settings of the adapters of a set of VMs.
type guests struct {
	offloads bool
	mtu      int
}

func (g guests) offloadsKey() string { return map[bool]string{true: "on", false: "off"}[g.offloads] }

func (g guests) String() string { return fmt.Sprintf("offloads %s, MTU %d", g.offloadsKey(), g.mtu) }

// setting is one column of the table.
type setting struct {
	path path
	guests
}

func (s setting) String() string { return s.path.String() + ", " + s.guests.String() }

// key begins the names of the setting's values.
func (s setting) key() string {
	return fmt.Sprintf("%s_%s_%d", s.path.key(), s.offloadsKey(), s.mtu)
}

// sets are the kinds of guests that are measured, those with offloads first.
func (e effort) sets() []guests {
	var all []guests
	for _, on := range []bool{true, false} {
		for _, mtu := range e.mtus {
			all = append(all, guests{on, mtu})
		}
	}
	return all
}

// cell is one cell of the table.
type cell struct {
	size int
	setting
}

// cells lists what is measured in each round. The two paths of one size and one kind of guests follow one another, so
// that a disturbance of the machine affects both sides of their ratio.
func (e effort) cells() []cell {
	var all []cell
	for _, size := range e.sizes {
		for _, g := range e.sets() {
			all = append(all, cell{size, setting{direct, g}}, cell{size, setting{firewall, g}})
		}
	}
	return all
}

// Run measures and returns the result. It leaves nothing behind, also when ctx ends on the way.
func Run(ctx context.Context, o Options) (*Measured, error) {
	e, err := o.selected()
	if err != nil {
		return nil, err
	}
	return run(ctx, o, e)
}

func run(ctx context.Context, o Options, e effort) (_ *Measured, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r, err := build(ctx, o, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.lab.Down()) }()
	o.Progress("trying the firewalls")
	for _, g := range e.sets() {
		if err := r.tryFirewall(ctx, g); err != nil {
			return nil, fmt.Errorf("firewall with %s: %w", g, err)
		}
	}
	return r.measure(ctx, o.Progress)
}

// RowNames are the names of the experiment's rows.
func RowNames() []string {
	return experiment.RowNames(article(), func(f figures) string { return strconv.Itoa(f.size) })
}
