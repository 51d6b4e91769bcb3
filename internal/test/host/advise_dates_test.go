package host

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// forged is the one finding about forged transmits.
func (l *adviceLab) forged(args ...string) api.Finding {
	l.t.Helper()
	by, a := l.advise(args...)
	if len(by["forged-transmits"]) != 1 {
		l.t.Fatalf("%+v", a)
	}
	return by["forged-transmits"][0]
}

// TestAdvise_DatesOutliveTheAgent: a finding keeps its dates over a restart, and what comes while no agent runs is
// dated to the next one's start.
func TestAdvise_DatesOutliveTheAgent(t *testing.T) {
	testkit.Long(t, "TestAdvise_AMissingDeviceIsMissingSinceItsPortIsThere has dates")
	l := newAdviceLab(t)
	l.plug(wellSet, "u1", "u2")
	file := l.file("heddle.yaml", wellSet)
	l.start("--config", file)
	l.awaitPort("a", api.Up)
	forge := func() { l.ends["a"].Send(cable.Frame(mac(0xb), mac(0x99), 0, "forged")) }
	before := time.Now()
	forge()
	first := l.forged()
	if first.FirstSeen.Before(before.Add(-time.Second)) || first.LastSeen.Before(first.FirstSeen) ||
		first.LastSeen.After(time.Now()) || first.Now || first.Undated {
		t.Fatalf("it came at %v: %+v", before, first)
	}
	l.kill(unix.SIGTERM)
	l.start("--config", file)
	if again := l.forged(); !again.FirstSeen.Equal(first.FirstSeen) || !again.LastSeen.Equal(first.LastSeen) {
		t.Errorf("after a restart %v to %v, before %v to %v", again.FirstSeen, again.LastSeen, first.FirstSeen,
			first.LastSeen)
	}
	l.kill(unix.SIGKILL)
	forge()
	down := time.Now()
	l.start("--config", file)
	if again := l.forged(); !again.FirstSeen.Equal(first.FirstSeen) || again.LastSeen.Before(down) {
		t.Errorf("%v to %v, and the second came at %v", again.FirstSeen, again.LastSeen, down)
	}
	out, _, status := l.heddle("advise", "--since", "1ms")
	if status != 0 || !strings.Contains(out,
		"1 older finding was not seen in the last 0s; heddle advise --all shows it.") {
		t.Errorf("status %d\n%s", status, out)
	}
	if f := l.forged("--all"); !f.FirstSeen.Equal(first.FirstSeen) {
		t.Errorf("%+v", f)
	}
}

// TestAdvise_AMissingDeviceIsMissingSinceItsPortIsThere, and not since the agent started; also after a restart.
func TestAdvise_AMissingDeviceIsMissingSinceItsPortIsThere(t *testing.T) {
	l := newAdviceLab(t)
	l.plug(wellSet, "u1", "u2")
	file := l.file("heddle.yaml", wellSet)
	l.start("--config", file)
	l.awaitPort("a", api.Up)
	connected := time.Now()
	l.must("port", "connect", "late", "--switch", "lab", "--port-group", "web", "--device", "nowhere")
	missing := func() api.Finding {
		by, a := l.advise()
		if len(by["device-missing"]) != 1 {
			t.Fatalf("%+v", a)
		}
		return by["device-missing"][0]
	}
	f := missing()
	if f.Port != "late" || f.FirstSeen.Before(connected) || !f.Now || strings.Contains(f.Sign, "at least") {
		t.Errorf("connected at %v: %+v", connected, f)
	}
	l.kill(unix.SIGTERM)
	l.start("--config", file)
	if again := missing(); !again.FirstSeen.Equal(f.FirstSeen) {
		t.Errorf("after a restart since %v, before since %v", again.FirstSeen, f.FirstSeen)
	}
}

// TestAdvise_ALinkThatWentDownIsNoFaultOfItsDevice: what the device of an uplink did not send because its link was lost
// is not its losses, while it is down and when it is back.
func TestAdvise_ALinkThatWentDownIsNoFaultOfItsDevice(t *testing.T) {
	l := newAdviceLab(t)
	l.plug(wellSet, "u1", "u2")
	l.start("--config", l.file("heddle.yaml", wellSet))
	l.awaitPort("a", api.Up)
	sender := cable.Open(t, l.ns, "u1")
	run(t, l.far, "ip link set f-u1 down")
	l.await("u1 is down", func() bool { return l.uplinkState("u1") == api.Down })
	notSent := func() uint64 {
		var s api.Stats
		if err := json.Unmarshal([]byte(l.must("stats", "u1", "-o", "json")), &s); err != nil {
			t.Fatal(err)
		}
		return s.Device.TxDropped
	}
	l.await("frames are not sent", func() bool {
		sender.Send(cable.Frame(cable.Broadcast(), mac(0xa), 0, "into nothing"))
		return notSent() > 0
	})
	if by, _ := l.advise(); len(by["device-losses"]) != 0 || len(by["team-degraded"]) == 0 {
		t.Errorf("while it is down: %+v", by)
	}
	run(t, l.far, "ip link set f-u1 up")
	l.await("u1 is up", func() bool { return l.uplinkState("u1") == api.Up })
	if by, _ := l.advise("--all"); len(by["device-losses"]) != 0 {
		t.Errorf("when it is back: %+v", by["device-losses"])
	}
}
