package fleet

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// noteText is an object of a kind that only the later version knows.
const noteText = "notes: [{name: later}]\n"

// Hosts are updated before the controllers: agents of a version that no controller has join, follow each change while
// the controllers are updated one after the other, and lose no frame. A host that stays behind is named for what it
// lacks by controllers of both versions, and objects of a new kind wait for the last controller.
func TestS83_HostsAreUpdatedBeforeTheControllers(t *testing.T) {
	testkit.Long(t, "builds a later version, and updates hosts and controllers")
	t.Parallel()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	for _, h := range f.hosts[:2] { // esx2 stays behind
		h.End(syscall.SIGTERM)
		h.Later()
		h.Start("")
	}
	all := f.controllers()
	for n, h := range f.hosts {
		all[n].Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := all[0].Define(fleetText); len(out.Hosts) != 3 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
		f.connect(n, 4, "p-db", "db")
	}
	streams := map[string]func(){}
	for n := range f.hosts {
		to := (n + 1) % len(f.hosts)
		s := f.stream(fmt.Sprintf("p-web@%d", n), fmt.Sprintf("p-web@%d", to), fleetMAC(n, 3), fleetMAC(to, 3))
		what := fmt.Sprintf("from esx%d to esx%d", n, to)
		streams[what] = func() { f.whole(what, s) }
	}
	f.spread(all[0])
	f.changesAt(all, -1, 30, api.HostUp)
	for _, c := range all {
		f.refusesText(c, tomorrowText, "unknown field", "tomorrow")
		f.refusesText(c, fleetText+noteText, "unknown field", "notes")
	}

	for i, c := range all {
		c.End(syscall.SIGTERM)
		c.Later()
		c.Start()
		c.Await("all hosts are connected", func() bool { return len(where(c)) == 3 })
		if i == 0 {
			f.beginsTomorrow(c)
		}
		f.laggardIsNamed(all, i)
		f.changesAt(all, i, 40+10*i, api.HostWarning)
		f.notesWait(all, i)
	}

	f.hosts[2].End(syscall.SIGTERM)
	f.hosts[2].Later()
	f.hosts[2].Start("")
	for _, c := range all {
		f.controller = c
		for n := range f.hosts {
			f.inState(fmt.Sprintf("esx%d", n), api.HostUp)
		}
		f.has("the definition at "+c.Name, f.definition(), "tomorrow: true", "note later")
	}
	f.changesAt(all, len(all), 90, api.HostUp)
	for _, ends := range streams {
		ends()
	}
}

// refusesText makes sure that a controller refuses a text, and says these parts.
func (f *fleet) refusesText(c *realhost.Controller, text string, parts ...string) {
	f.t.Helper()
	f.controller = c
	_, refused := f.tries(api.Define{Content: text})
	f.has("the refusal of "+c.Name, refused, parts...)
}

// beginsTomorrow has the first controller of the later version define what only that knows.
func (f *fleet) beginsTomorrow(c *realhost.Controller) {
	f.t.Helper()
	f.controller = c
	_, refused := f.tries(api.Define{Content: tomorrowText})
	f.has("the refusal", refused, "host esx2 would go without portGroup dvs/web: security.tomorrow",
		"--allow-unprotected")
	for _, host := range []string{"esx0", "esx1"} {
		if strings.Contains(refused, host) {
			f.t.Errorf("%s knows the field, and the refusal names it: %s", host, refused)
		}
	}
	out, refused := f.tries(api.Define{Content: tomorrowText, AllowUnprotected: true})
	if refused != "" || len(out.Waiting) != 1 || out.Waiting[0].Host != "esx2" {
		f.t.Fatalf("a change that is meant: %s, %+v", refused, out)
	}
}

// laggardIsNamed makes sure that each controller names esx2 alone for what is not active there, and that those of the
// version before say what they do not know themselves. Those up to last are updated.
func (f *fleet) laggardIsNamed(all [3]*realhost.Controller, last int) {
	f.t.Helper()
	for i, c := range all {
		f.controller = c
		f.inState("esx0", api.HostUp)
		f.inState("esx1", api.HostUp)
		f.inState("esx2", api.HostWarning)
		f.has("the problems of esx2 by "+c.Name, strings.Join(f.host("esx2").Problems, "\n"),
			"security.tomorrow is not active")
		want := "tomorrow: true"
		if i > last {
			want = "# portGroup dvs/web has security.tomorrow, which this controller does not know"
		}
		f.has("the definition at "+c.Name, f.definition(), want)
	}
}

// changesAt makes a change at each controller, by what that one knows, which is active on all hosts then. esx2 is in
// that
// state. Those up to last are updated, -1 for none.
func (f *fleet) changesAt(all [3]*realhost.Controller, last, vlan int, laggard api.HostState) {
	f.t.Helper()
	for i, c := range all {
		f.controller = c
		text := fleetText
		if i <= last {
			text = tomorrowText
		}
		if last == len(all) {
			text += noteText
		}
		access := fmt.Sprintf("access: %d", vlan+i)
		out, refused := f.tries(api.Define{Content: strings.Replace(text, "access: 20", access, 1)})
		if refused != "" {
			f.t.Fatalf("a change at %s: %s", c.Name, refused)
		}
		waiting := slices.DeleteFunc(out.Waiting, func(w api.HostProblem) bool {
			return w.Host == "esx2" && laggard == api.HostWarning
		})
		if len(out.Hosts) != 3 || len(waiting) > 0 {
			f.t.Errorf("a change at %s: %+v", c.Name, out)
		}
		if i > last && last >= 0 {
			f.has("what was kept", strings.Join(out.Kept, "\n"), "portGroup dvs/web has security.tomorrow")
		}
		for n := range f.hosts {
			f.hosts[n].Await("the change is active", func() bool {
				return f.vlan(n, "p-db") == strings.Replace(access, ":", "", 1)
			})
		}
	}
}

// notesWait makes sure that objects of a new kind are refused while a controller does not know them: those after last.
func (f *fleet) notesWait(all [3]*realhost.Controller, last int) {
	f.t.Helper()
	f.controller = all[last]
	_, refused := f.tries(api.Define{Content: tomorrowText + noteText})
	for _, old := range all[last+1:] {
		f.has("the refusal", refused, "controller "+old.Name+" at "+old.Address+
			" does not know objects of the kind note: update it first")
	}
	if last == len(all)-1 && refused != "" {
		f.t.Errorf("all controllers know the kind: %s", refused)
	}
}
