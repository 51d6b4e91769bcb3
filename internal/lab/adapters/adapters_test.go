package adapters

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/report"
)

func TestRowsAreSelectedByAdapter(t *testing.T) {
	e, err := Options{Rows: []string{"vmxnet3"}, Quick: true}.effort()
	if err != nil || len(e.adapters) != 1 || len(e.settings()) != 4 || e.rounds != 2 {
		t.Errorf("%v: %+v", err, e)
	}
	err = Options{Rows: []string{"rtl8139"}}.Check()
	if err == nil || !strings.Contains(err.Error(), "experiment guest-adapters has no row rtl8139; it has ") {
		t.Errorf("%v", err)
	}
}

// What was not carried is no figure, and is said; the ratio is to the first adapter, round by round.
func TestReport_RatiosAndSilence(t *testing.T) {
	e := effort{adapters: adapters()[:2], mtus: []int{1500}, rounds: 2, duration: time.Second}
	first, off := setting{"virtio-net", true, 1500}, setting{"virtio-net", false, 1500}
	m := &measured{effort: e, kernel: "6.12", fixed: map[string][]string{"virtio-net": {"rx-checksum"}},
		samples: map[setting][2][]sample{
			first: {{{100, 60000}, {200, 60000}}, {{50, 60000}, {50, 60000}}},
			off:   {{{25, 1500}, {50, 1500}}, nil},
		}, silent: map[silence]int{{off, receives}: 2}}
	r := m.report()
	if len(r.Rows) != 4 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	row := r.Rows[1]
	if got := row.Get("sends_ratio").(report.Spread); got.Median != 0.25 || got.Rounds != 2 {
		t.Errorf("%+v", got)
	}
	if got := row.Get("sends_bytes_per_frame").(report.Spread); got.Median != 1500 {
		t.Errorf("%+v", got)
	}
	if got := row.Get("receives_bps").(report.Spread); got.Rounds != 0 {
		t.Errorf("%+v", got)
	}
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"virtio-net, offloads off, MTU 1500, receives: nothing was carried in 2 of 2 rounds.",
		"virtio-net: its driver does not turn off rx-checksum.", "under QEMU's emulation",
		"which the emulator runs in one thread"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
}
