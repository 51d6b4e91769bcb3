package host

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/diagnose/advise"
	"heddle/internal/test/testkit/cable"
)

// wellSet is like badlySet, with everything as it should be.
const wellSet = `switches:
- name: lab
  kind: distributed
  uplinks: [{name: u1, device: u1, vlans: ["0-29"]}, {name: u2, device: u2, vlans: ["0-29"]}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: hashed, vlan: {access: 11}, teaming: {policy: ip-hash}}
  - {name: nested, vlan: {access: 10}, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 16}}}
  - {name: sensor, vlan: {access: 10}, security: {promiscuous: accept}}
ports:
- {name: a, switch: lab, portGroup: web, device: p-a, mac: "02:00:00:00:00:0a"}
- {name: b, switch: lab, portGroup: web, device: p-b, mac: "02:00:00:00:00:0b"}
- {name: c, switch: lab, portGroup: hashed, device: p-c, mac: "02:00:00:00:00:0c"}
- {name: nest, switch: lab, portGroup: nested, device: p-nest, mac: "02:00:00:00:00:0d"}
- {name: sensor, switch: lab, portGroup: sensor, device: p-sensor, mac: "02:00:00:00:00:0e"}
`

// behave sends what a sound host sees: unicast both ways at full length, addresses behind a port, broadcasts in and
// out, and what the physical network floods by both uplinks.
func (l *adviceLab) behave() {
	long := strings.Repeat("x", 1500)
	for _, u := range []string{"u1", "u2"} {
		l.ends[u].Send(neighbourFrame(1522))
	}
	for i := range byte(20) {
		l.ends["a"].Send(cable.Frame(mac(0xb), mac(0xa), 0, long))
		l.ends["b"].Send(cable.Frame(mac(0xa), mac(0xb), 0, "back"))
		l.ends["nest"].Send(cable.Frame(mac(0xa), mac(0x40+i%4), 0, "behind"))
		l.ends["a"].Send(cable.Frame(mac(0x40+i%4), mac(0xa), 0, "answer"))
		for _, from := range []struct {
			name   string
			source byte
		}{{"a", 0xa}, {"b", 0xb}, {"c", 0xc}} {
			l.ends[from.name].Send(cable.Frame(mac(0xf0), mac(from.source), 0, "out"))
			l.broadcast(from.name, from.source, 0)
		}
		for _, u := range []string{"u1", "u2"} {
			l.ends[u].Send(cable.Frame(cable.Broadcast(), mac(0xf0), 10, "from outside"))
			l.ends[u].Send(cable.Frame(mac(0xa), mac(0xf0), 10, "to a"))
			l.ends[u].Send(cable.Frame(mac(0xc), mac(0xf0), 11, "to c"))
		}
	}
}

// TestAdvise_ASoundHostIsLeftInPeace: no rule says anything, since the start and in a time measured under traffic.
func TestAdvise_ASoundHostIsLeftInPeace(t *testing.T) {
	l := newAdviceLab(t)
	l.plug(wellSet, "u1", "u2")
	run(t, l.far, "ip link set f-sensor promisc on")
	l.start("--config", l.file("heddle.yaml", wellSet))
	for _, p := range []string{"a", "b", "c", "nest", "sensor"} {
		l.awaitPort(p, api.Up)
	}
	l.await("both uplinks are up", func() bool { return strings.Count(l.must("uplink", "list"), " up ") == 2 })
	l.behave()
	for _, at := range []string{"u1", "u2", "b", "sensor"} {
		if l.sent(at) == 0 {
			t.Errorf("no broadcast came to %s: it is not the traffic that was meant", at)
		}
	}
	l.await("both neighbours are known", func() bool {
		var list []api.Uplink
		return json.Unmarshal([]byte(l.must("uplink", "list", "-o", "json")), &list) == nil && len(list) == 2 &&
			!slices.ContainsFunc(list, func(u api.Uplink) bool { return u.LLDP == nil || len(u.LLDP.Neighbours) == 0 })
	})
	inPeace(t, l.must("advise", "-o", "json"), false)
	out := make(chan string, 1)
	go func() {
		text, _, _ := l.heddle("advise", "--for", "300ms", "-o", "json")
		out <- text
	}()
	for measured := false; !measured; {
		select {
		case text := <-out:
			inPeace(t, text, true)
			measured = true
		// what a sound host sends has a rate: 200 broadcasts a second of each port
		case <-time.After(100 * time.Millisecond):
			l.behave()
		}
	}
	if out := l.must("advise"); !strings.HasPrefix(out, "No problems found. ") {
		t.Error(out)
	}
}

func inPeace(t *testing.T, text string, measured bool) {
	t.Helper()
	var a api.Advice
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(a.Findings) > 0 || a.Ports != 5 || a.Uplinks != 2 || a.Rules != len(advise.Rules()) ||
		(a.MeasuredSeconds >= 0.3) != measured {
		t.Errorf("%s", text)
	}
}

// TestAdvise_AfterTheRemedyTheWindowIsSilent: what is found is fixed as the finding says, and what comes then is no
// sign any more.
func TestAdvise_AfterTheRemedyTheWindowIsSilent(t *testing.T) {
	l := newAdviceLab(t)
	l.plug(wellSet, "u1", "u2")
	file := l.file("heddle.yaml", wellSet)
	l.start("--config", file)
	l.awaitPort("a", api.Up)
	forge := func() { l.ends["a"].Send(cable.Frame(mac(0xb), mac(0x99), 0, "forged")) }
	forge()
	by, _ := l.advise()
	f := by["forged-transmits"]
	if len(f) != 1 || f[0].Edit == nil || f[0].Edit.File != file ||
		f[0].Edit.Set != "security: {forgedTransmits: accept}" || f[0].Edit.Name != "web" {
		t.Fatalf("%+v", by)
	}
	fixed := strings.Replace(wellSet, "{name: web, vlan: {access: 10}}", "{name: web, vlan: {access: 10}, "+
		f[0].Edit.Set+"}", 1)
	if err := os.WriteFile(file, []byte(fixed), 0o600); err != nil {
		t.Fatal(err)
	}
	l.must(strings.Fields(f[0].Command)[1:]...)
	forge()
	for _, args := range [][]string{{"--for", "50ms"}, {"--all"}, nil} {
		by, a := l.advise(args...)
		if len(by["forged-transmits"]) > 0 || a.Older != 0 {
			t.Errorf("%q: %+v, and %d older", args, by, a.Older)
		}
	}
}

// TestAdvise_AFaultFixedBeforeAnybodyAskedIsNone: what was counted before a change, and read for the first time after
// it, is not held against the new settings.
func TestAdvise_AFaultFixedBeforeAnybodyAskedIsNone(t *testing.T) {
	l := newAdviceLab(t)
	l.plug(wellSet, "u1", "u2")
	file := l.file("heddle.yaml", wellSet)
	l.start("--config", file)
	l.awaitPort("a", api.Up)
	l.advise() // the first reading: what was counted until then has no date
	l.ends["a"].Send(cable.Frame(mac(0xb), mac(0x99), 0, "forged"))
	fixed := strings.Replace(wellSet, "{name: web, vlan: {access: 10}}", "{name: web, vlan: {access: 10}, "+
		"security: {forgedTransmits: accept}}", 1)
	if err := os.WriteFile(file, []byte(fixed), 0o600); err != nil {
		t.Fatal(err)
	}
	l.must("apply", "-f", file)
	for _, args := range [][]string{{"--all"}, nil} {
		if by, _ := l.advise(args...); len(by["forged-transmits"]) > 0 {
			t.Errorf("%q: %+v", args, by["forged-transmits"])
		}
	}
}
