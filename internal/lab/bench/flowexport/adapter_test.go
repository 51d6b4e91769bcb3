package flowexport

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/multiqueue"
	"heddle/internal/lab/report"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec"
)

// withQueues are options for numbers of queues.
func withQueues(n ...int) Options {
	o := defaults()
	o.Queues = n
	return o
}

func cellNames(t *testing.T, o Options) []string {
	t.Helper()
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	cells, err := o.cells()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range cells {
		names = append(names, c.title())
	}
	return names
}

func TestEachNumberOfQueuesIsACellOfEachAdapter(t *testing.T) {
	o := withQueues(1, 4)
	want := []string{"udp-18 ×1, tap/1", "udp-18 ×1, tap/4", "udp-18 ×1, virtio-net/1", "udp-18 ×1, virtio-net/4",
		"crr-4 ×1, tap/1", "crr-4 ×1, tap/4", "crr-4 ×1, virtio-net/1", "crr-4 ×1, virtio-net/4"}
	if got := cellNames(t, o); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	configs, err := o.configurations()
	if err != nil || names(configs) != "baseline ipfix ipfix-bi" {
		t.Errorf("configurations %s, %v", names(configs), err)
	}
	o.Loads, o.Pairs, o.Configurations = []string{"udp-512", "stream"}, []int{1, 8}, []string{"ipfix+5k"}
	want = []string{"udp-512 ×1, tap/1", "udp-512 ×1, tap/4", "udp-512 ×1, virtio-net/1", "udp-512 ×1, virtio-net/4",
		"udp-512 ×8, tap/1", "udp-512 ×8, tap/4", "stream ×1, tap/1", "stream ×1, tap/4", "stream ×8, tap/1",
		"stream ×8, tap/4"}
	if got := cellNames(t, o); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if notes := strings.Join(o.leftOut(), " "); !strings.Contains(notes, "more than one pair of guests") ||
		!strings.Contains(notes, "stream between guests") {
		t.Errorf("left out: %s", notes)
	}
	if configs, _ = o.configurations(); names(configs) != "baseline+5k ipfix+5k" {
		t.Errorf("configurations %s", names(configs))
	}
	if names := cellNames(t, defaults()); strings.Contains(strings.Join(names, " "), "tap") {
		t.Errorf("without numbers of queues: %q", names)
	}
}

func TestWrongQueues(t *testing.T) {
	for _, c := range []struct {
		name, want string
		queues     []int
		set        func(*Options)
	}{
		{"none", "0 queues: want 1–256, as many as a tap has", []int{0}, nil},
		{"fewer than none", "-1 queues: want 1–256", []int{4, -1}, nil},
		{"more than a tap has", "257 queues: want 1–256", []int{257}, nil},
		{"twice", "3 queues are asked for twice", []int{3, 3}, nil},
		{"unknown adapter", `no adapter "e1000": want some of tap, virtio-net`, []int{4}, func(o *Options) {
			o.Adapters = []string{"e1000"}
		}},
		{"adapters alone", "say --queues 1,4", nil, func(o *Options) { o.Adapters = []string{"tap"} }},
		{"more VMs than addresses", "VMs on each host", []int{1, 2, 3, 4, 5, 6, 7}, func(o *Options) {
			o.Pairs = []int{16}
		}},
		{"more queues than a guest has", "nothing is left to measure. Left out: virtio-net of 16 queues", []int{16},
			func(o *Options) { o.Adapters = []string{"virtio-net"} }},
		{"no QEMU", "nothing is left to measure. Left out: virtio-net in guests under QEMU, with any number of " +
			"queues: QEMU is not installed", []int{1}, func(o *Options) {
			o.Adapters, o.noGuests = []string{"virtio-net"}, errors.New("QEMU is not installed")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := withQueues(c.queues...)
			if c.set != nil {
				c.set(&o)
			}
			if err := o.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
		})
	}
	if err := withQueues(1, 256).Check(); err != nil {
		t.Error(err)
	}
}

func TestWhereGuestsCannotRunTheRestIsMeasured(t *testing.T) {
	o := withQueues(2, 16)
	o.Loads = []string{"udp-18"}
	want := []string{"udp-18 ×1, tap/2", "udp-18 ×1, tap/16", "udp-18 ×1, virtio-net/2"}
	if got := cellNames(t, o); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if notes := o.leftOut(); len(notes) != 1 || !strings.Contains(notes[0], "virtio-net of 16 queues") {
		t.Errorf("left out: %q", notes)
	}
	o.noGuests = errors.New("QEMU is not installed: install the package qemu-system-x86")
	if got := cellNames(t, o); !slices.Equal(got, want[:2]) {
		t.Errorf("%q", got)
	}
	if notes := o.leftOut(); len(notes) != 1 || !strings.Contains(notes[0], "install the package qemu-system-x86") {
		t.Errorf("left out: %q", notes)
	}
	o.Adapters = []string{"tap"}
	if notes := o.leftOut(); len(notes) != 0 {
		t.Errorf("guests were not asked for: %q", notes)
	}
}

func TestVMsOfEachAdapterHaveNumbersOfTheirOwn(t *testing.T) {
	o := withQueues(1, 4)
	o.Loads, o.Pairs = []string{"udp-18", "crr-4"}, []int{1, 2}
	cells, err := o.cells()
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleetOf(cells)
	want := "[/0 tap/1 tap/1 tap/4 tap/4 virtio-net/1 virtio-net/4]"
	if err != nil || fmt.Sprint(f.adapters) != want || f.first[adapter{tap, 4}] != 3 ||
		f.first[adapter{virtio, 4}] != 6 {
		t.Errorf("%v, %v: want %s", f, err, want)
	}
	for _, overlay := range []bool{false, true} {
		s, err := scenario.Parse("lab.yaml", []byte(scenarioText(f.adapters, overlay)), nil)
		if err != nil {
			t.Fatal(err)
		}
		var queues []int
		for _, v := range s.VMs {
			queues = append(queues, v.Queues)
		}
		if !slices.Equal(queues, []int{0, 1, 1, 4, 4, 0, 1, 1, 4, 4}) {
			t.Errorf("queues of the VMs that are namespaces: %v", queues)
		}
		if cfg, err := spec.Parse("host.yaml", []byte(hostConfig(tx, bi, export{bi, 4739}, len(f.adapters)-1,
			overlay))); err != nil || len(cfg.Ports) < len(f.adapters) {
			t.Errorf("a port for each VM: %v", err)
		}
	}
}

func TestFlowsAreAtLeastEightForEachQueue(t *testing.T) {
	for _, c := range []struct{ queues, flows int }{{1, 64}, {4, 64}, {16, 128}, {256, 1024}} {
		t.Run(fmt.Sprint(c.queues), func(t *testing.T) {
			if got := withQueues(1, c.queues).flows(); c.queues > 1 && got != c.flows {
				t.Errorf("%d flows for %d queues", got, c.queues)
			}
		})
	}
	if n := defaults().flows(); n != 0 {
		t.Errorf("%d flows between veths", n)
	}
}

func TestQuickQueuesAreQuick(t *testing.T) {
	o := withQueues(1, 4)
	o.Quick()
	if got := cellNames(t, o); len(got) != 8 || o.Limit > 2*time.Minute {
		t.Errorf("%q, limit %v", got, o.Limit)
	}
	configs, _ := o.configurations()
	r := &run{opts: o, configs: configs}
	var all time.Duration
	r.cells, _ = o.cells()
	for _, c := range r.cells {
		all += r.expected(c)
	}
	if all > o.Limit { // the flows that are waited for and the guests' boot come on top
		t.Errorf("one visit to each cell takes %v, with a limit of %v", all, o.Limit)
	}
}

func counts(toVM ...uint64) (all []multiqueue.Counts) {
	for _, n := range toVM {
		all = append(all, multiqueue.Counts{ToVM: n, FromVM: 10 * n})
	}
	return all
}

func TestSpreadIsWhatQueuesCarriedBetweenTwoLooks(t *testing.T) {
	var s spread
	for range 2 { // two pairs, or two visits
		s.add([len(sides)][]multiqueue.Counts{counts(1, 1, 1, 1), counts(100, 100, 100, 100)},
			[len(sides)][]multiqueue.Counts{counts(1, 2, 3, 4), counts(100, 110, 120, 170)})
	}
	if !slices.Equal(s.received, []uint64{0, 20, 40, 140}) || !slices.Equal(s.sent, []uint64{0, 20, 40, 60}) {
		t.Errorf("%+v", s)
	}
	if n, least, most := used(s.received); n != 3 || least != 0 || most != 70 {
		t.Errorf("%d of 4 queues, %g–%g %%", n, least, most)
	}
	if n, least, most := used(nil); n != 0 || least != 0 || most != 0 {
		t.Errorf("nothing was carried: %d queues, %g–%g %%", n, least, most)
	}
}

// madeUpQueues is a run with invented figures of two cells: four queues of taps, and of emulated machines.
func madeUpQueues(kept float64) *run {
	r := madeUp("udp-18", kept, kept, kept)
	list := map[string][]sample{"baseline": r.samples[at{r.cells[0].id(), "baseline"}],
		"ipfix": r.samples[at{r.cells[0].id(), "ipfix"}]}
	r.opts.Queues = []int{4}
	r.cells, _ = r.opts.cells()
	r.spreads = spreads{}
	for _, c := range r.cells {
		for name, samples := range list {
			r.samples[at{c.id(), name}] = samples
		}
		r.spreads[c.id()] = spread{received: []uint64{25, 25, 20, 30}, sent: []uint64{0, 0, 100, 0}}
	}
	return r
}

func TestRowsSayWhichQueuesWereUsed(t *testing.T) {
	rep := madeUpQueues(0.99).report(report.Environment{})
	if len(rep.Rows) != 4 {
		t.Fatalf("%d rows, want two adapters in two configurations", len(rep.Rows))
	}
	for i, row := range rep.Rows {
		want := []string{"tap", "tap", "virtio-net", "virtio-net"}[i]
		if row.Get("adapter") != want || row.Get("queues") != 4 {
			t.Errorf("row %d: %v, %v queues", i, row.Get("adapter"), row.Get("queues"))
		}
	}
	if got := rep.Rows[0].Get("queues_received").([]uint64); !slices.Equal(got, []uint64{25, 25, 20, 30}) {
		t.Errorf("received by queue: %v", got)
	}
	var b strings.Builder
	if err := rep.Write(&b, report.Table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"udp-18 ×1, tap/4, baseline", "4 of 4, 20–30 %", "1 of 4, 0–100 %", "standard error",
		"without KVM and vhost", "cell ×pairs, adapter/queues, configuration"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestQueuesThatWereNotUsedAreAMissedBudget(t *testing.T) {
	r := madeUpQueues(0.99)
	budget := func(part string) (found []report.Budget) {
		for _, b := range r.report(report.Environment{}).Budgets {
			if strings.Contains(b.Name, part) {
				found = append(found, b)
			}
		}
		return found
	}
	if list := budget("receive queues"); len(list) != 2 || !list[0].Met || !list[1].Met {
		t.Errorf("%+v", list)
	}
	r.spreads[r.cells[0].id()] = spread{received: []uint64{100, 0, 0, 0}}
	if list := budget("receive queues"); list[0].Met || list[0].Value != 1 || !list[1].Met {
		t.Errorf("%+v", list)
	}
	r.cells[0].load, r.cells = loads()[5], r.cells[:1] // a stream is one flow
	if list := budget("receive queues"); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// TestEmulatedMachinesAreShownAndNotJudged: what a machine under emulation loses is no miss of the switch.
func TestEmulatedMachinesAreShownAndNotJudged(t *testing.T) {
	r := madeUpQueues(0.50)
	for _, b := range r.report(report.Environment{}).Budgets {
		if strings.Contains(b.Name, "virtio") && !strings.Contains(b.Name, "receive queues") {
			t.Errorf("judged: %+v", b)
		}
	}
	r.cells = r.cells[1:]
	if len(r.rateBudgets())+len(r.costBudgets()) != 0 {
		t.Error("a budget of emulated machines alone")
	}
	if s := r.kept(r.cells[0], configuration{uni, false}); math.Abs(s.Median-0.5) > 1e-9 {
		t.Errorf("its ratio is %+v", s)
	}
}
