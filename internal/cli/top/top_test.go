package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heddle/internal/api"
	"heddle/internal/test/testkit/pty"
)

// reading is n ports; port i received i*k frames of 125 bytes, and dropped drops[i] of them.
func reading(n, k int, at int64, drops map[int]uint64) []api.Stats {
	all := make([]api.Stats, n)
	for i := range all {
		frames := uint64(i * k)
		all[i] = api.Stats{Switch: "lab", PortGroup: "web", Name: fmt.Sprintf("vm%04d", i), ReadAt: at,
			Counters: []api.Counter{
				{Name: "packetsInUnicast", Value: frames}, {Name: "bytesInUnicast", Value: 125 * frames},
				{Name: "packetsInDropped", Value: drops[i]}}}
		if drops[i] > 0 {
			all[i].Drops = []api.ReasonNo{{Reason: "forged-transmit", Value: drops[i]}}
		}
	}
	return all
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// running returns a view of n ports with rates.
func running(n int) *Model {
	m := &Model{Title: "default", Interval: time.Second, Sort: BitsIn, Width: 120, Height: 14}
	m.Update(reading(n, 1, 1e9, nil), start)
	m.Update(reading(n, 2, 2e9, map[int]uint64{3: 7}), start.Add(time.Second))
	return m
}

func texts(m *Model) (lines []string) {
	for _, l := range m.Screen() {
		lines = append(lines, strings.TrimRight(l.Text, " "))
	}
	return lines
}

func names(m *Model) (out []string) {
	for _, l := range texts(m)[above:] {
		out = append(out, strings.Fields(l)[0])
	}
	return out
}

func TestTheScreenShowsRatesDropsAndTheReasonOfTheLast(t *testing.T) {
	m := running(5)
	m.Update(reading(5, 3, 3e9, map[int]uint64{3: 7}), start.Add(4*time.Second))
	want := []string{
		"heddle top  default  03:04:09  every 1s  5 ports",
		"in 10kbit/s 10 pkt/s   out 0bit/s 0 pkt/s   dropped and refused 0/s",
		"q quit  1-9 s r sort  / only some  Enter one  p pause  arrows scroll  ? help",
		"PORT         IN bit/s↓ OUT bit/s  IN pkt/s OUT pkt/s  BCAST/s  DROP/s  DROPS  LAST DROP",
		"vm0004              4k         0         4         0        0       0      0  -",
		"vm0003              3k         0         3         0        0       0      7  in forged-transmit 3s",
		"vm0002              2k         0         2         0        0       0      0  -",
		"vm0001              1k         0         1         0        0       0      0  -",
		"vm0000               0         0         0         0        0       0      0  -",
	}
	if d := cmp.Diff(want, texts(m)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestTheReasonOfTheLastDropIsThatOfMostOfThem(t *testing.T) {
	m := &Model{}
	at := func(n int64, drops, refused []api.ReasonNo) {
		m.Update([]api.Stats{{Switch: "s", Name: "p", ReadAt: n, Drops: drops, Refused: refused}},
			start.Add(time.Duration(n)*time.Second))
	}
	last := func() string { return m.lastDrop(m.rows[0].Last) }
	at(1, []api.ReasonNo{{Reason: "old", Value: 1000}}, nil)
	if got := last(); got != "in old before" {
		t.Errorf("what was dropped before the view began: %q", got)
	}
	at(2, []api.ReasonNo{{Reason: "old", Value: 1001}, {Reason: "forged-transmit", Value: 3}},
		[]api.ReasonNo{{Reason: "mtu-exceeded", Value: 2}})
	if got := last(); got != "in forged-transmit 0s" {
		t.Errorf("%q", got)
	}
	at(3, []api.ReasonNo{{Reason: "old", Value: 1001}, {Reason: "forged-transmit", Value: 3}},
		[]api.ReasonNo{{Reason: "mtu-exceeded", Value: 3}})
	at(70, []api.ReasonNo{{Reason: "old", Value: 1001}, {Reason: "forged-transmit", Value: 3}},
		[]api.ReasonNo{{Reason: "mtu-exceeded", Value: 3}})
	if got := last(); got != "out mtu-exceeded 1m7s" {
		t.Errorf("%q", got)
	}
	at(71, nil, nil) // counters that were reset
	if got := last(); got != "out mtu-exceeded 1m8s" {
		t.Errorf("%q", got)
	}
	m.Update(nil, start.Add(72*time.Second))
	if len(m.last) != 0 {
		t.Error("a port that is gone is remembered")
	}
}

func TestKeysSortFilterScrollAndPause(t *testing.T) {
	m := running(1000)
	press := func(keys ...string) {
		for _, k := range keys {
			m.Key(k)
		}
	}
	check := func(what string, want ...string) {
		t.Helper()
		if got := names(m)[:len(want)]; !cmp.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("by bits in", "vm0999", "vm0998")
	press("down", "j", "down")
	check("scrolled", "vm0996")
	press("page-down")
	check("a page", "vm0987")
	press("end")
	check("to the end", "vm0009")
	if got := names(m); got[len(got)-1] != "vm0000" || len(got) != 10 {
		t.Errorf("the end: %v", got)
	}
	press("down", "page-down")
	check("beyond the end", "vm0009")
	press("home", "up")
	check("beyond the beginning", "vm0999")
	press("r")
	check("the other way round", "vm0000", "vm0001")
	press("1")
	check("by name", "vm0000")
	press("1")
	check("by name, turned", "vm0999")
	press("8")
	check("by drops", "vm0003", "vm0000")
	press("right")
	check("by the last drop", "vm0003")
	press("1", "/", "9", "9", "x", "\x7f", "\r")
	check("filtered", "vm0099", "vm0199")
	if len(m.Rows()) != 19 {
		t.Errorf("%d rows have 99 in them", len(m.Rows()))
	}
	press("q") // the filter has been typed
	if m.Key("q") != Quit || m.Key("\x1a") != Suspend || m.Key("\x0c") != Redraw {
		t.Error("q, Ctrl-Z and Ctrl-L do nothing")
	}
	press("escape", "p")
	if !m.Paused || len(m.Rows()) != 1000 {
		t.Errorf("paused %v, %d rows", m.Paused, len(m.Rows()))
	}
}

// flooded returns a host on which vm1 floods, vm2 gets the copies and refuses some, vm3's frames are dropped, and u1
// receives copies that come back.
func flooded(n uint64, at int64) []api.Stats {
	in := func(counter string, n uint64) []api.Counter { return []api.Counter{{Name: counter, Value: n}} }
	return []api.Stats{
		{Switch: "lab", Name: "vm1", ReadAt: at, Counters: in("packetsInBroadcast", 600*n)},
		{Switch: "lab", Name: "vm2", ReadAt: at, Counters: append(in("packetsOutBroadcast", 600*n),
			api.Counter{Name: "packetsOutDropped", Value: 90 * n}),
			Refused: []api.ReasonNo{{Reason: "mtu-exceeded", Value: 40 * n}, {Reason: "reflected", Value: 50 * n}}},
		{Switch: "lab", Name: "vm3", ReadAt: at, Counters: append(in("packetsInUnicast", 9*n),
			api.Counter{Name: "packetsInDropped", Value: n}),
			Drops: []api.ReasonNo{{Reason: "forged-transmit", Value: n}}},
		{Switch: "lab", Name: "vm4", ReadAt: at, Counters: in("packetsInMulticast", 700*n)},
		{Switch: "lab", Name: "vm5", ReadAt: at, Counters: in("packetsInUnicast", 650*n),
			Extra: in("unknownNotFlooded", 550*n)},
		{Switch: "lab", Name: "u1", Uplink: true, ReadAt: at, Counters: append(in("packetsInBroadcast", 600*n),
			api.Counter{Name: "packetsInDropped", Value: 600 * n}),
			Drops: []api.ReasonNo{{Reason: "reflected", Value: 600 * n}}},
	}
}

func TestTheFlooderIsMarkedAndNotItsVictims(t *testing.T) {
	column, ok := ColumnOf("broadcast")
	if !ok {
		t.Fatal("--sort broadcast is unknown")
	}
	m := &Model{Title: "default", Interval: time.Second, Sort: column, Filter: "vm", Width: 200, Height: 14}
	m.Update(flooded(1, 1e9), start)
	m.Update(flooded(2, 2e9), start.Add(time.Second))
	if d := cmp.Diff([]string{"vm4", "vm1", "vm5", "vm2", "vm3"}, names(m)); d != "" {
		t.Errorf("by broadcast: -want +got:\n%s", d)
	}
	m.Filter = ""
	marked := map[string]bool{}
	for _, l := range m.Screen()[above:] {
		if l.Loud {
			marked[strings.Fields(l.Text)[0]] = true
		}
	}
	if d := cmp.Diff(map[string]bool{"vm1": true, "vm3": true, "vm5": true}, marked); d != "" {
		t.Errorf("marked: -want +got:\n%s", d)
	}
	if line := texts(m)[above]; !strings.HasPrefix(line,
		"vm4                  0         0       700         0      700          0       0") {
		t.Errorf("%q", line)
	}
}

func TestNumbersStayNearTheNamesInAWideWindow(t *testing.T) {
	m := running(3)
	m.Width = 200
	for _, line := range texts(m)[above:] {
		if f := strings.Fields(line); strings.LastIndex(line[:leastName+widths[BitsIn]], f[1]) < 0 {
			t.Errorf("%q", line)
		}
	}
}

func TestAQuestionMarkShowsTheKeys(t *testing.T) {
	m := running(3)
	m.Height = 24
	ports := texts(m)
	m.Key("?")
	lines := strings.Join(texts(m), "\n")
	for _, want := range []string{"\n  q  ", "1-9 or s", "BCAST/s: broadcast, multicast and unknown-unicast",
		"Yellow: "} {
		if !strings.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, lines)
		}
	}
	if strings.Contains(lines, "vm0001") {
		t.Errorf("ports beside the keys:\n%s", lines)
	}
	m.Key("?")
	if d := cmp.Diff(ports, texts(m)); d != "" {
		t.Errorf("after the second ?: %s", d)
	}
	m.Key("?")
	if m.Key("q") != Quit {
		t.Error("q does not quit while the keys are shown")
	}
}

func TestWhatATerminalSendsIsTakenApart(t *testing.T) {
	for sent, want := range map[string][]string{"q": {"q"}, "\x1b[A\x1b[Bx": {"up", "down", "x"}, "\x1bOD": {"left"},
		"\x1b[6~": {"page-down"}, "\x1b": {"escape"},
		"ä/": {"ä", "/"}, "\x1b[1;5C7": {"7"}, "\x1b[": nil, "\xff": nil, "\x1b[<0;1;1Mq": {"q"}} {
		t.Run(sent, func(t *testing.T) {
			if got := Split([]byte(sent)); !cmp.Equal(got, want) {
				t.Errorf("%q: %q, want %q", sent, got, want)
			}
		})
	}
}

func TestAnyKeysInAnyWindowStayInsideIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := running(rapid.IntRange(0, 40).Draw(t, "ports"))
		for range 20 {
			m.Width, m.Height = rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 30).Draw(t, "height")
			for _, k := range Split(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "typed")) {
				m.Key(k)
			}
			lines := m.Screen()
			if len(lines) > m.Height {
				t.Fatalf("%d lines in %d", len(lines), m.Height)
			}
			for _, l := range lines {
				if utf8.RuneCountInString(l.Text) > m.Width || strings.ContainsFunc(l.Text, func(r rune) bool {
					return r < 0x20
				}) {
					t.Fatalf("%q in %d columns", l.Text, m.Width)
				}
			}
		}
	})
}

func TestBatchesAreLinesAndJSONIsOneObject(t *testing.T) {
	m := running(3)
	var b bytes.Buffer
	if err := m.Batch(&b); err != nil || strings.Contains(b.String(), "\x1b") || strings.Count(b.String(), "\n") != 6 {
		t.Errorf("%v:\n%s", err, b.String())
	}
	b.Reset()
	if err := m.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct{ Rows []Row }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got.Rows) != 3 || got.Rows[0].Port != "vm0002" ||
		strings.Count(b.String(), "\n") != 1 {
		t.Errorf("%v %+v", err, got)
	}
}

// TestTheTerminalIsAsItWas ends a view in every way that does not end the process.
func TestTheTerminalIsAsItWas(t *testing.T) {
	for _, how := range []string{"q", "Ctrl-C", "end", "fault", "panic", "lost"} {
		t.Run(how, func(t *testing.T) {
			p := pty.Open(t, 100, 20)
			was := p.Settings()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var reads atomic.Int64
			read := func(context.Context) (Reading, error) {
				n := reads.Add(1)
				if how == "panic" && n == 3 {
					panic("of the test")
				}
				if how == "fault" || how == "lost" && n > 2 {
					return Reading{}, errors.New("no agent\x1b[2J is running")
				}
				return Reading{Hosts: []HostStats{{Stats: reading(30, int(n), n*1e9, nil)}}}, nil
			}
			m := &Model{Title: "default", Interval: 10 * time.Millisecond, Sort: BitsIn}
			ended := make(chan any, 1)
			go func() {
				defer func() {
					if p := recover(); p != nil {
						ended <- p
					}
				}()
				err := Run(ctx, m, p.Program, p.Program, false, read)
				if err != nil {
					ended <- err
				} else {
					ended <- nil
				}
			}()
			if how != "fault" && how != "panic" {
				p.Await("the ports", func(s string) bool {
					return strings.Contains(s, "vm0029") && p.Own() &&
						p.Hidden()
				})
				if p.Settings() == was {
					t.Error("the terminal was not taken")
				}
			}
			switch how {
			case "q":
				p.Type("q")
			case "Ctrl-C":
				p.Type("\x03")
			case "end":
				cancel()
			case "lost":
				p.Await("what is wrong", func(s string) bool {
					return strings.Contains(s, "no answer: no agent?[2J "+
						"is running")
				})
				p.Type("q")
			}
			select {
			case end := <-ended:
				if wrong := how == "fault" || how == "panic"; (end != nil) != wrong {
					t.Errorf("ended with %v", end)
				}
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			p.Await("the screen is given back", func(string) bool { return !p.Own() && !p.Hidden() })
			if now := p.Settings(); now != was {
				t.Errorf("the terminal is not as it was: %+v, was %+v", now, was)
			}
		})
	}
}

// A drop from before the view began has a reason, too, but no time.
func TestWhatWasDroppedBeforeTheViewHasItsReason(t *testing.T) {
	m := &Model{Title: "default", Interval: time.Second, Sort: LastDrop, Width: 120, Height: 14}
	m.Update(flooded(1, 1e9), start)
	text := strings.Join(texts(m), "\n")
	for _, want := range []string{"in forged-transmit before", "out mtu-exceeded before"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	m.Update(flooded(2, 2e9), start.Add(time.Second))
	if text := strings.Join(texts(m), "\n"); strings.Contains(text, "before") {
		t.Errorf("after a drop that was seen:\n%s", text)
	}
}

func TestUnknownUnicastAndThePortGroupAreShownWhereThereIsRoom(t *testing.T) {
	column, ok := ColumnOf("unknown")
	if !ok {
		t.Fatal("--sort unknown is unknown")
	}
	m := &Model{Title: "default", Interval: time.Second, Sort: ToMany, Width: 120, Height: 14}
	reading := func(n uint64, at int64) []api.Stats {
		all := flooded(n, at)
		all[4].PortGroup = "nested"
		all[5].Speed = 8_000_000 // the uplink receives 600 frames a second of 1000 bytes
		all[5].Counters = append(all[5].Counters, api.Counter{Name: "bytesInBroadcast", Value: 600_000 * n})
		return all
	}
	m.Update(reading(1, 1e9), start)
	m.Update(reading(2, 2e9), start.Add(time.Second))
	for _, c := range []struct {
		what          string
		width         int
		sort          Column
		unknown, wide bool
	}{{"a narrow window", 120, ToMany, false, false}, {"sorted by it", 120, column, true, false},
		{"a wide window", 200, ToMany, true, true}} {
		t.Run(c.what, func(t *testing.T) {
			m.Width, m.Sort = c.width, c.sort
			lines := texts(m)
			head := lines[above-1]
			if strings.Contains(head, "UNKNOWN/s") != c.unknown || strings.Contains(head, "PORT GROUP") != c.wide ||
				strings.Contains(strings.Join(lines, "\n"), "nested") != c.wide {
				t.Errorf("%s", strings.Join(lines, "\n"))
			}
			if !strings.HasSuffix(lines[0], "u1 ^ 60%") {
				t.Errorf("the use of the uplink is not in %q", lines[0])
			}
		})
	}
	m.Sort = column
	if r := m.Rows()[0]; r.Port != "vm5" || r.value(Unknown) != 550 {
		t.Errorf("by unknown unicast the first is %+v", r)
	}
}

func TestEnterShowsOnePortByItself(t *testing.T) {
	m := &Model{Title: "agent", Interval: time.Second, Sort: Name, Width: 120, Height: 30}
	m.Update(flooded(1, 1e9), time.Unix(1, 0))
	m.Update(flooded(2, 2e9), time.Unix(2, 0))
	list := texts(m)
	press := func(keys ...string) string {
		for _, k := range keys {
			m.Key(k)
		}
		return strings.Join(texts(m), "\n")
	}
	holds := func(screen string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(screen, w) {
				t.Errorf("no %q in\n%s", w, screen)
			}
		}
	}
	m.Filter = "vm2"
	holds(press("\r"), "Esc all ports", "packetsOutBroadcast                     1200", "COPIES FOR IT, REFUSED FOR",
		"  reflected                                100\n  mtu-exceeded                              80",
		"heddle port show vm2; a reason: heddle explain REASON")
	if s := press(); strings.Contains(s, "packetsInUnicast") || strings.Contains(s, "DROPPED FOR") {
		t.Errorf("counters that are zero are shown:\n%s", s)
	}
	m.Filter = ""
	holds(press("right"), "FRAMES FROM IT, DROPPED FOR", "  forged-transmit                            2",
		"heddle port show vm3")
	holds(press("left", "left"), "heddle port show vm1")
	holds(press("left"), "heddle uplink show u1")
	holds(press("left"), "heddle uplink show u1") // there is nothing before the first
	m.Height = 8
	if s := press("down", "end"); strings.Contains(s, "COUNTER") || !strings.Contains(s, "heddle uplink show u1") {
		t.Errorf("the end of the port:\n%s", s)
	}
	m.Height = 30
	m.Update(flooded(3, 3e9)[:5], time.Unix(3, 0))
	holds(press(), "u1 is not there any more; Esc shows the list")
	m.Update(flooded(2, 4e9), time.Unix(2, 0))
	press("escape")
	if d := cmp.Diff(list[3:], texts(m)[3:], cmp.Comparer(func(a, b string) bool {
		return strings.Fields(a)[0] == strings.Fields(b)[0]
	})); d != "" {
		t.Errorf("after Esc: %s", d)
	}
}

// While an answer is waited for, the screen says whose, also before the first one.
func TestTheScreenSaysForWhomItWaits(t *testing.T) {
	who := "waiting for the controller at https://c1, 3 s"
	fresh := &Model{Title: "all hosts", Interval: time.Second, Sort: BitsIn, Width: 120, Height: 14}
	for name, m := range map[string]*Model{"before the first answer": fresh, "later": running(3)} {
		said := ""
		m.Waits = func() string { return said }
		if text := strings.Join(texts(m), "\n"); strings.Contains(text, "waiting") {
			t.Errorf("%s, nobody is waited for: %s", name, text)
		}
		said = who
		if text := strings.Join(texts(m), "\n"); !strings.Contains(text, who+" (q quits)") {
			t.Errorf("%s: %s", name, text)
		}
	}
}
