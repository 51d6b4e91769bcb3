package migration

import (
	"encoding/hex"
	"errors"
	"maps"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/traffic"
)

func TestImpossibleRequestsAreRefused(t *testing.T) {
	if err := (Options{Rows: []string{"nonsense"}}).Check(); !errors.Is(err, experiment.ErrUnknown) {
		t.Errorf("an unknown row: %v", err)
	}
	for _, o := range []Options{{Moves: -1}, {Moves: maxMoves + 1}, {Rate: -1}, {Rate: 1}, {Rate: 2 * maxRate}} {
		if o.Check() == nil {
			t.Errorf("accepted: %+v", o)
		}
	}
	if err := (Options{Moves: 5, Rate: 1000}).Check(); err != nil {
		t.Error(err)
	}
}

func TestTheLabIsDrawn(t *testing.T) {
	if list := topology.OfText(labText); len(list) != 1 || list[0].SVG == "" {
		t.Errorf("%d pictures", len(list))
	}
}

// The frame is the one that QEMU sends for a guest that has arrived.
func TestTheAnnouncementIsARequestForTheOwnAddress(t *testing.T) {
	mac, err := net.ParseMAC(guestMAC)
	if err != nil {
		t.Fatal(err)
	}
	const m = "020000000501"
	want := "ffffffffffff" + m + "8035" + "0001" + "0800" + "0604" + "0003" + m + "00000000" + m + "00000000" +
		strings.Repeat("00", 18)
	if got := hex.EncodeToString(rarp(mac)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A transfer of 1000 bytes per bin stops for 100 ms and comes back.
func TestTheBulkTransferIsBackWhenItHasItsRate(t *testing.T) {
	b := &bulk{began: time.Unix(100, 0)}
	for i := range 200 { // a second
		n := 1000.0
		if i >= 80 && i < 100 {
			n = 0
		}
		b.bytes = append(b.bytes, n)
	}
	at := func(ms int) time.Time { return b.began.Add(time.Duration(ms) * time.Millisecond) }
	if got := b.between(at(0), at(400)); got != 1.6e6 {
		t.Errorf("%v b/s before", got)
	}
	// One bin of ten may lack: the window begins one bin before the silence is over.
	if got := b.back(at(400), at(410), at(1000)); math.Abs(got-0.085) > 1e-9 {
		t.Errorf("back after %v s", got)
	}
	if got := b.back(at(400), at(410), at(460)); !math.IsNaN(got) {
		t.Errorf("back after %v s, and it never was", got)
	}
}

func TestReport_CountsWhatIsWrongAgainstTheBudgets(t *testing.T) {
	stop := time.Unix(100, 0)
	m := &measured{row: row{name: "namespace"}, has: true, differ: 3, broken: 1, copies: 1,
		before: map[string]uint64{"packetsInUnicast": 10}, after: map[string]uint64{"packetsInUnicast": 7}}
	for _, gap := range []float64{0.01, 0.06, 0.02} {
		m.moves = append(m.moves, move{rarpAfter: 0.02, rarps: 4, early: 1, strayEarly: 1, duplicated: 1, bulk: 0.1,
			times: times{stopped: stop, arrived: stop.Add(time.Second)}, out: traffic.Received{LongestGap: gap,
				LongestGapAt: stop.UnixNano(), Lost: 5, Overflowed: 2}})
	}
	rep := &report.Report{}
	fill(rep, []*measured{m, {row: row{name: "still", still: true}, moves: m.moves[:1]}}, effort{})
	for _, b := range rep.Budgets {
		if b.Met != strings.HasSuffix(b.Name, "bulk transfer at its rate") {
			t.Errorf("%+v", b)
		}
	}
	if len(rep.Budgets) != 7 || rep.Rows[0].Get("lost_out") != uint64(9) || rep.Rows[0].Get("early") != uint64(3) ||
		rep.Rows[1].Get("early") != nil || rep.Rows[0].Get("gap_max_s") != 0.06 {
		t.Errorf("%+v, %+v", rep.Budgets, rep.Rows)
	}
	text := strings.Join(rep.Conclusions, "\n")
	for _, want := range []string{"its packets come through again at 20.0 ms", "2 of 3 moves had no copy",
		"packetsInUnicast 7 instead of 10"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if line := rep.Timelines[0]; len(line.Lanes) != 2 {
		t.Errorf("%+v", line)
	}
}

// TestS80_AllEighteenCountersAreCompared: what the guest got of its own host, the queries to all nodes, is no part of
// them, and what it sends to all nodes is.
func TestS80_AllEighteenCountersAreCompared(t *testing.T) {
	all := named(counts{unicast: 1, multicast: 2, broadcast: 3, allNodes: 4, classBytes + unicast: 10,
		classBytes + multicast: 20, classBytes + broadcast: 30, classBytes + allNodes: 40},
		counts{unicast: 5, multicast: 6, broadcast: 7, allNodes: 8, classBytes + unicast: 50,
			classBytes + multicast: 60, classBytes + broadcast: 70, classBytes + allNodes: 80})
	want := map[string]uint64{"packetsInUnicast": 1, "packetsInMulticast": 6, "packetsInBroadcast": 3,
		"bytesInUnicast": 10, "bytesInMulticast": 60, "bytesInBroadcast": 30, "packetsOutUnicast": 5,
		"packetsOutMulticast": 6, "packetsOutBroadcast": 7, "bytesOutUnicast": 50, "bytesOutMulticast": 60,
		"bytesOutBroadcast": 70, "packetsInDropped": 0, "packetsOutDropped": 0, "packetsInException": 0,
		"packetsOutException": 0, "bytesInFromPnic": 180, "bytesOutToPnic": 100}
	if len(want) != 18 || !maps.Equal(all, want) {
		t.Errorf("%v\nwant\n%v", all, want)
	}
}

// A tunnel is handed frames with the number of their segment in front, which counts.
func TestTheCountersOfATunnel(t *testing.T) {
	all := named(counts{unicast: 1, broadcast: 3, allNodes: 4, classBytes + unicast: 100}, counts{unicast: 7})
	plain := (row{}).network().numbered(maps.Clone(all))
	tunnel := (row{overlay: true}).network().numbered(maps.Clone(all))
	if !maps.Equal(plain, all) || tunnel["bytesOutToPnic"] != all["bytesOutToPnic"]+4*8 {
		t.Errorf("in a VLAN %v\nover a tunnel %v\nof %v", plain, tunnel, all)
	}
}

func TestDiffer_AddsUpBothWays(t *testing.T) {
	if n := differ(map[string]uint64{"a": 5, "b": 1, "c": 2}, map[string]uint64{"a": 3, "b": 4, "d": 9}); n != 7 {
		t.Errorf("%d", n)
	}
}
