package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/report"
	"heddle/internal/lab/scenario"
	"heddle/internal/test/testkit"
)

// A thousand ports change their VLAN while two of them carry a stream: nothing is lost, no link flaps, and nothing sent
// after the command has returned reaches the old segment. How long it takes is for the experiment to measure.
func TestAThousandPortsChangeTheirVLANUnderAStream(t *testing.T) {
	testkit.Long(t, "makes a thousand ports; TestAWatcherNotesWhenItsSendersFramesArrive has few")
	testkit.Root(t)
	testkit.Weigh(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s, err := scenario.Parse(Name+".yaml", []byte(labFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Build(ctx, s, lab.Options{Name: fmt.Sprintf("livetest%d", os.Getpid()), RunDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{effort: effort{ports: 1000, rounds: 1, rate: 2000}, lab: l, agent: l.Agent(host),
		ns: map[string]*netns.NS{}, watchers: map[int]*watcher{}}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.prepare(ctx, func(string) {}); err != nil {
		t.Fatal(err)
	}
	state, err := r.agent.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Ports) != 1000 || state.Switches[0].PortsUp != 1000 {
		t.Fatalf("%d ports, %d of them up", len(state.Ports), state.Switches[0].PortsUp)
	}
	m := Measured{Row: rows()[1]}
	for _, there := range []bool{true, false} {
		if err := r.round(ctx, &m, there); err != nil {
			t.Fatal(err)
		}
		old := newVLAN
		if there {
			old = oldVLAN
		}
		seen, err := r.watchers[old].seen()
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.stream(ctx, r.rate, func() error { return pause(ctx, around) })
		if err != nil || p.Received == 0 || p.Lost > 0 {
			t.Errorf("after the change: %+v, %v", p, err)
		}
		if now, err := r.watchers[old].seen(); err != nil || now != seen {
			t.Errorf("%d frames reached the old segment after the command had returned (%v)", now-seen, err)
		}
	}
	if m.Sent == 0 || m.Lost+m.Duplicated+m.Reordered > 0 || m.Flaps > 0 || len(m.InForce) != 2 {
		t.Errorf("%+v", m)
	}
}

func TestRowsAreChosenByName(t *testing.T) {
	if all, err := chosen(nil); err != nil || len(all) != 6 {
		t.Errorf("%d rows, %v", len(all), err)
	}
	if some, err := chosen([]string{"mtu", "vlan"}); err != nil || len(some) != 2 || some[0].name != "mtu" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := chosen([]string{"nonsense"}); !errors.Is(err, experiment.ErrUnknown) {
		t.Errorf("unknown row: %v", err)
	}
}

func TestLeaksAreCountedFromAMillisecondAfterTheChange(t *testing.T) {
	m := Measured{Row: rows()[1]}
	if err := m.leaks([]int64{1e6, 5e6, 5.9e6, 6.1e6, 9e6}, 5e6); err != nil || m.Leaked != 2 ||
		math.Abs(m.LastInOld[0]-0.004) > 1e-9 {
		t.Errorf("%v, %+v", err, m)
	}
	if err := m.leaks([]int64{6e6}, 5e6); err == nil {
		t.Error("a watcher that saw nothing before the change measures nothing")
	}
}

func TestTheReportHoldsWhatWasMeasuredAgainstTheBudgets(t *testing.T) {
	all := []Measured{{Row: rows()[0], Gap: []float64{0.002}, Sent: 10}, {Row: rows()[1], InForce: []float64{0.02},
		Leaked: 1, LastInOld: []float64{0.003}, Sent: 10}}
	err := Report(all, 1000).Check()
	if !errors.Is(err, report.ErrBudget) || !strings.Contains(err.Error(), "vlan active") ||
		!strings.Contains(err.Error(), "vlan leaked") || strings.Contains(err.Error(), "lost") {
		t.Errorf("%v", err)
	}
	all[1].InForce[0], all[1].Leaked = 0.005, 0
	if err := Report(all, 1000).Check(); err != nil {
		t.Error(err)
	}
}
