package meter

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/plan"
)

var minute = Settings{ActiveTimeout: time.Minute, IdleTimeout: 15 * time.Second, MaxFlows: 1000}

// one is the single record that was made.
func (w *world) one() flow.Record {
	w.t.Helper()
	r := w.take()
	if len(r) != 1 {
		w.t.Fatalf("%d records instead of one: %+v", len(r), r)
	}
	return r[0]
}

// none fails when a record was made.
func (w *world) none() {
	w.t.Helper()
	if r := w.take(); len(r) > 0 {
		w.t.Fatalf("a record was made too early: %+v", r)
	}
}

func TestS64_IdleFlowIsExportedIdleTimeoutAfterItsLastPacket(t *testing.T) {
	w := newWorld(t, minute)
	begin := w.now.Wall
	for range 20 {
		w.send(key(1), 2)
		w.run(time.Second)
	}
	last := begin.Add(19 * time.Second) // the last packet; now is one second later
	w.run(13 * time.Second)
	w.none()
	w.run(2 * time.Second)
	r := w.one()
	if r.Reason != flow.IdleTimeout || r.Start != begin.UnixMilli() || r.Total.Last != last.UnixMilli() ||
		r.Total.Packets != 40 || r.Delta != r.Total {
		t.Errorf("record %+v", r)
	}
	w.run(2 * time.Minute)
	w.none()
	if n := w.m.Statistics()["lab"].Flows; n != 0 {
		t.Errorf("%d flows are left", n)
	}
}

func TestS64_WhatWasToldOfByTheActiveTimeoutIsStillEnded(t *testing.T) {
	w := newWorld(t, Settings{ActiveTimeout: time.Minute, IdleTimeout: 5 * time.Minute, MaxFlows: 10})
	w.send(key(1), 7)
	w.run(61 * time.Second)
	if r := w.one(); r.Reason != flow.ActiveTimeout || r.Delta.Packets != 7 {
		t.Errorf("first record %+v", r)
	}
	w.run(238 * time.Second)
	w.none()
	w.run(2 * time.Second)
	if r := w.one(); r.Reason != flow.IdleTimeout || r.Delta.Packets != 0 || r.Total.Packets != 7 {
		t.Errorf("last record %+v", r)
	}
}

func TestS65_LongFlowIsExportedEveryActiveTimeoutWithDeltas(t *testing.T) {
	w := newWorld(t, minute)
	start, before, told := w.now.Wall.UnixMilli(), w.now.Up, uint64(0)
	for range 600 {
		w.send(key(1), 3)
		w.run(time.Second)
		for _, r := range w.take() {
			if gap := w.now.Up - before; gap > time.Minute+time.Second {
				t.Errorf("%v between two records", gap)
			}
			told += r.Delta.Packets
			if r.Reason != flow.ActiveTimeout || r.Start != start || r.Total.Packets != told ||
				r.Delta.First < before.Milliseconds() {
				t.Errorf("record %+v after %d packets", r, told)
			}
			before = w.now.Up
		}
	}
	if told < 600*3-200 {
		t.Errorf("only %d of 1800 packets were told of", told)
	}
}

// A packet after a pause longer than activeTimeout is reported within another activeTimeout.
func TestS65_PacketAfterAPauseIsToldInTime(t *testing.T) {
	w := newWorld(t, Settings{ActiveTimeout: time.Minute, IdleTimeout: 10 * time.Minute, MaxFlows: 10})
	w.send(key(1), 1)
	w.run(61 * time.Second)
	w.take()
	w.run(205 * time.Second)
	w.none()
	w.send(key(1), 1)
	w.run(61 * time.Second)
	if r := w.one(); r.Delta.Packets != 1 || r.Total.Packets != 2 {
		t.Errorf("record %+v", r)
	}
}

func TestFlowEndsShortlyAfterFINOrRST(t *testing.T) {
	for _, flag := range []uint16{finFlag, rstFlag} {
		w := newWorld(t, minute)
		w.send(key(1), 5)
		w.run(time.Second)
		ms := w.now.Wall.UnixMilli()
		w.kernel.count(key(1), flow.Counts{Packets: 1, Bytes: 40, FrameBytes: 54, First: ms, Last: ms,
			TCPFlags: 0x10 | flag})
		w.run(time.Second)
		w.none()
		w.run(2 * time.Second)
		if r := w.one(); r.Reason != flow.EndOfFlow || r.Total.Packets != 6 || r.Total.TCPFlags != 0x10|flag {
			t.Errorf("flag %d: record %+v", flag, r)
		}
	}
}

func TestFlowsOfAPortThatWentAreEnded(t *testing.T) {
	w := newWorld(t, minute)
	w.send(key(1), 5)
	w.run(time.Second)
	w.send(key(1), 5)
	delete(w.kernel.points, 2)
	w.run(time.Second)
	if r := w.one(); r.Reason != flow.ForcedEnd || r.Total.Packets != 10 {
		t.Errorf("record %+v", r)
	}
}

// The slot has another port's counts when the drain comes: they must not be reported as those of the previous port,
// also after a restart.
func TestSlotThatIsUsedAgainKeepsPortsApart(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t, minute)
		w.send(key(1), 5)
		w.run(time.Second)
		points := flow.Points{}
		for s, p := range w.kernel.points {
			points[s] = p
		}
		points[2] = flow.Point{ID: plan.PortID{Switch: "lab", Name: "vm7"}, Number: 77}
		w.kernel.points = points
		w.send(key(1), 3)
		if restart {
			w.kill()
		}
		w.run(time.Second)
		if r := w.one(); r.Reason != flow.ForcedEnd || r.Total.Packets != 5 {
			t.Errorf("restart %v: record of the port before: %+v", restart, r)
		}
		w.run(20 * time.Second)
		if r := w.one(); r.Reason != flow.IdleTimeout || r.Total.Packets != 3 {
			t.Errorf("restart %v: record of the new port: %+v", restart, r)
		}
	}
}

func TestClockThatIsSetDoesNotEndFlows(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		w := newWorld(t, minute)
		w.send(key(1), 1)
		w.run(time.Second)
		w.send(key(1), 1)
		w.now.Wall = w.now.Wall.Add(by)
		w.run(12 * time.Second)
		w.none()
		w.send(key(1), 1)
		w.run(14 * time.Second)
		w.none()
		w.run(2 * time.Second)
		if r := w.one(); r.Reason != flow.IdleTimeout || r.Total.Packets != 3 || r.Total.Last < r.Start ||
			r.Delta.First > r.Delta.Last {
			t.Errorf("clock set by %v: record %+v", by, r)
		}
	}
}

func TestFullTableTellsOfNewFlowsAtOnce(t *testing.T) {
	set := minute
	set.MaxFlows = 4
	w := newWorld(t, set)
	for p := range uint16(6) {
		w.send(key(p), 1)
	}
	w.run(time.Second)
	r := w.take()
	if len(r) != 2 || r[0].Reason != flow.NoResources || r[0].Delta.Packets != 1 || r[0].Key != key(4) {
		t.Errorf("records %+v", r)
	}
	if st := w.m.Statistics()["lab"]; st.Flows != 4 || st.Overflow.Packets != 2 || st.Folded.Packets != 6 {
		t.Errorf("statistics %+v", st)
	}
}

func TestS68_InternalFlowsOnly(t *testing.T) {
	set := minute
	set.InternalOnly = true
	w := newWorld(t, set)
	ms := w.now.Wall.UnixMilli()
	for i, ends := range [][2]uint16{{1, 2}, {1, 9}, {9, 2}, {1, 0}, {0, 2}, {2, 3}} {
		w.kernel.count(key(uint16(i)), flow.Counts{Packets: 1, Bytes: 40, FrameBytes: 54, First: ms, Last: ms,
			In: ends[0], Out: ends[1]})
	}
	w.run(20 * time.Second)
	got := map[uint16]bool{}
	for _, r := range w.take() {
		got[r.Key.SrcPort] = true
	}
	if len(got) != 2 || !got[0] || !got[5] {
		t.Errorf("flows %v were exported instead of 0 and 5", got)
	}
	if st := w.m.Statistics()["lab"]; st.Excluded.Packets != 4 || st.InRecords.Packets != 6 {
		t.Errorf("statistics %+v", st)
	}
}

func TestStopTellsOfEveryFlowAndLeavesNoFile(t *testing.T) {
	w := newWorld(t, minute)
	for p := range uint16(10) {
		w.send(key(p), 1)
	}
	if err := w.m.Stop(context.Background(), func() (Instant, error) { return w.now, nil }); err != nil {
		t.Fatal(err)
	}
	r := w.take()
	if len(r) != 10 || r[0].Reason != flow.ForcedEnd {
		t.Errorf("%d records: %+v", len(r), r)
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, "*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func TestNoFileWithoutAFlow(t *testing.T) {
	w := newWorld(t, minute)
	w.run(5 * time.Second)
	if left, _ := filepath.Glob(filepath.Join(w.dir, "*.table")); len(left) > 0 {
		t.Errorf("files without a flow: %v", left)
	}
}

// Records that an exporter does not accept wait in the table.
func TestExporterThatTakesLittleLosesNothing(t *testing.T) {
	w := newWorld(t, minute)
	w.sink.budget = 7
	for p := range uint16(100) {
		w.send(key(p), 1)
	}
	w.run(20 * time.Second)
	if n := len(w.sink.records); n == 0 || n >= 100 {
		t.Fatalf("%d records at once", n)
	}
	w.run(20 * time.Second)
	if n := len(w.take()); n != 100 {
		t.Errorf("%d records in the end", n)
	}
}

func TestRenumberedBatchesEndTheFlowsBefore(t *testing.T) {
	w := newWorld(t, minute)
	for range 5 {
		w.send(key(1), 1)
		w.run(time.Second)
	}
	w.kernel.number = 0 // the tables were made anew
	w.send(key(1), 10)
	w.run(time.Second)
	if r := w.one(); r.Reason != flow.ForcedEnd || r.Total.Packets != 5 {
		t.Errorf("record %+v", r)
	}
	w.run(20 * time.Second)
	if r := w.one(); r.Total.Packets != 10 {
		t.Errorf("record %+v", r)
	}
}

func TestFileThatCannotBeUsedIsSetAside(t *testing.T) {
	for name, damage := range map[string]func(b []byte) []byte{
		"header":  func(b []byte) []byte { b[9]++; return b },
		"short":   func(b []byte) []byte { return b[:5000] },
		"empty":   func([]byte) []byte { return nil },
		"counts":  func(b []byte) []byte { b[headerRoom+64+24+5] = 0xff; return b },
		"another": func(b []byte) []byte { copy(b[headerRoom+256:], b[headerRoom:headerRoom+256]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, minute)
			w.send(key(1), 1)
			w.run(time.Second)
			w.m.release()
			file := filepath.Join(w.dir, "flows.lab.table")
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			w.start()
			if _, err := os.Stat(file + ".unusable"); err != nil {
				t.Error(err)
			}
			w.send(key(2), 1)
			w.run(20 * time.Second)
			if r := w.one(); r.Key != key(2) {
				t.Errorf("record %+v", r)
			}
		})
	}
}

func TestSecondAgentIsRefused(t *testing.T) {
	w := newWorld(t, minute)
	w.send(key(1), 1)
	w.run(time.Second)
	if _, err := New(w.m.o); err == nil {
		t.Error("two agents share a flow table")
	}
}

// The flows of a removed port are reported as fast as the exporter accepts them, as that port's.
func TestFlowsOfAPortThatWentAreToldOfInTime(t *testing.T) {
	w := newWorld(t, minute)
	w.sink.budget = 7
	for p := range uint16(50) {
		w.send(key(p), 1)
	}
	w.run(time.Second)
	delete(w.kernel.points, 2)
	w.run(2 * time.Second)
	if n := len(w.sink.records); n < 7 || n > 14 {
		t.Fatalf("%d records at once", n)
	}
	if w.m.points[2].ID.Name != "vm2" {
		t.Error("the port is forgotten before its flows are told of")
	}
	w.run(8 * time.Second)
	r := w.take()
	if len(r) != 50 || r[49].Reason != flow.ForcedEnd {
		t.Errorf("%d records", len(r))
	}
	if _, there := w.m.points[2]; there {
		t.Error("the port is not forgotten")
	}
}

// What the exporter does not accept before the agent must stop is there for the next agent, with its ports.
func TestStopThatIsCutShortLeavesTheRest(t *testing.T) {
	w := newWorld(t, minute)
	w.sink.budget, w.sink.left = 7, 7
	for p := range uint16(50) {
		w.send(key(p), 1)
	}
	ctx, cancel := context.WithCancel(context.Background())
	clock := func() (Instant, error) {
		if len(w.sink.records) > 0 {
			cancel()
		}
		return w.now, nil
	}
	if err := w.m.Stop(ctx, clock); err != nil {
		t.Fatal(err)
	}
	if n := len(w.sink.records); n != 7 {
		t.Fatalf("%d records before the stop", n)
	}
	w.start()
	if w.m.points[2].ID.Name != "vm2" {
		t.Errorf("points %v", w.m.points)
	}
	w.sink.budget = 0
	w.run(20 * time.Second)
	to := told{}
	for _, r := range w.take() {
		to.add(r)
	}
	if n := len(to); n != 50 {
		t.Errorf("%d flows were told of", n)
	}
}
