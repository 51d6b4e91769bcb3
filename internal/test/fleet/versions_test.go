package fleet

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// tomorrowText is the fleet's definition with a security field that only the later version knows.
var tomorrowText = strings.Replace(fleetText, "{name: web, vlan: {access: 10}}",
	"{name: web, vlan: {access: 10}, security: {tomorrow: true}}", 1)

// exchange replaces the controller by one of another version, on the same data.
func (f *fleet) exchange(version func()) {
	f.t.Helper()
	f.controller.End(syscall.SIGTERM)
	version()
	f.controller.Start()
}

// tries defines a text, and gives the answer or the refusal.
func (f *fleet) tries(q api.Define) (*api.Defined, string) {
	f.t.Helper()
	q.File, q.Wait = "fleet.yaml", realhost.Patience
	out, err := f.controller.Defines(q)
	if err != nil {
		return out, err.Error()
	}
	return out, ""
}

// definition is what the controller shows.
func (f *fleet) definition() string {
	f.t.Helper()
	return f.controller.Certain().Content
}

// has makes sure that a text has all of these parts.
func (f *fleet) has(what, text string, parts ...string) {
	f.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			f.t.Errorf("%s:\n%s\nwithout %q", what, text, part)
		}
	}
}

// Controllers and hosts are updated one after the other, in either order: what one of them does not know is never
// ignored silently, and never lost, and no frame is.
func TestS83_ControllersAndHostsOfTwoVersionsWorkTogether(t *testing.T) {
	testkit.Long(t, "builds a later version")
	t.Parallel()
	f := newFleet(t)
	f.controller.Start()
	for n, name := range []string{"esx0", "esx1"} {
		f.controller.Join(f.hosts[n].Host, name, map[string]string{"rack": "a"})
	}
	f.controller.Define(fleetText)
	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
	}
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	if _, refused := f.tries(api.Define{Content: tomorrowText}); !strings.Contains(refused, "unknown field") {
		t.Errorf("this version takes a field of a later one: %s", refused)
	}

	// The controller first, then a host. One host stays.
	f.exchange(f.controller.Later)
	f.inState("esx0", api.HostUp)
	f.inState("esx1", api.HostUp)
	_, refused := f.tries(api.Define{Content: tomorrowText})
	f.has("the refusal", refused, "host esx0 would go without portGroup dvs/web: security.tomorrow",
		"host esx1 would go without", "--allow-unprotected")
	f.hosts[1].End(syscall.SIGTERM)
	f.hosts[1].Later()
	f.hosts[1].Start("")
	f.inState("esx1", api.HostUp)
	if _, refused = f.tries(api.Define{Content: tomorrowText}); strings.Contains(refused, "esx1") {
		t.Errorf("the host was updated, and the refusal names it: %s", refused)
	}
	out, refused := f.tries(api.Define{Content: tomorrowText, AllowUnprotected: true})
	if refused != "" || len(out.Waiting) != 1 || out.Waiting[0].Host != "esx0" {
		t.Errorf("a change that is meant: %s, %+v", refused, out)
	}
	f.has("the host's problem", strings.Join(f.host("esx0").Problems, "\n"), "security.tomorrow is not active")
	f.inState("esx1", api.HostUp)

	// Back to the controller before, which the later host follows. It keeps what it does not know.
	f.exchange(f.controller.Earlier)
	f.inState("esx0", api.HostWarning)
	f.inState("esx1", api.HostUp)
	shown := f.definition()
	f.has("the definition", shown, "# portGroup dvs/web has security.tomorrow, which this controller does not know")
	out, refused = f.tries(api.Define{Content: strings.Replace(shown, "access: 20", "access: 30", 1)})
	f.has("what was kept", refused+strings.Join(out.Kept, "\n"), "portGroup dvs/web has security.tomorrow")
	f.connect(1, 4, "p-db", "db")
	if got := f.vlan(1, "p-db"); got != "access 30" {
		t.Errorf("the later host has VLAN %s by the controller before", got)
	}
	f.exchange(f.controller.Later)
	f.has("the definition", f.definition(), "tomorrow: true", "access: 30")

	// The last host is updated.
	f.hosts[0].End(syscall.SIGTERM)
	f.hosts[0].Later()
	f.hosts[0].Start("")
	f.inState("esx0", api.HostUp)
	if _, refused := f.tries(api.Define{Content: f.definition() + "notes: [{name: later}]\n"}); refused != "" {
		t.Errorf("an object of a new kind, and all controllers are new: %s", refused)
	}
	f.whole("between the hosts", between)
}

// Of several controllers one is updated after the other. What a host does not know is known at each of them, and
// objects of a new kind wait for the last one.
func TestS83_TheLastControllerDecidesAboutNewKinds(t *testing.T) {
	testkit.Long(t, "builds a later version, and updates three controllers")
	t.Parallel()
	f := newFleet(t)
	all := f.controllers()
	for n, h := range f.hosts {
		all[0].Join(h.Host, []string{"esx0", "esx1"}[n], map[string]string{"rack": "a"})
	}
	all[0].Define(fleetText)
	f.controller = all[0]
	for i, c := range all {
		c.End(syscall.SIGTERM)
		c.Later()
		c.Start()
		for _, name := range []string{"esx0", "esx1"} {
			c.Await(name+" is up", func() bool { return c.StateOf(name) == api.HostUp })
		}
		f.controller = c
		_, refused := f.tries(api.Define{Content: tomorrowText})
		f.has("the refusal", refused, "host esx0 would go without", "host esx1 would go without")
		_, refused = f.tries(api.Define{Content: fleetText + "notes: [{name: later}]\n"})
		for _, old := range all[i+1:] {
			f.has("the refusal", refused, "controller "+old.Name+" at "+old.Address+
				" does not know objects of the kind note")
		}
		if i == len(all)-1 && refused != "" {
			t.Errorf("all controllers know the kind: %s", refused)
		}
	}
}

// An upgrade of a host that is taken back while no controller answers does not cut off its guests: the version before
// goes on without what it does not know, and says so. A security field takes the operator's word; the kernel goes on.
func TestS103_AnUpgradeIsTakenBack(t *testing.T) {
	testkit.Long(t, "builds a later version")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	h := f.hosts[0]
	f.controller.Later()
	f.controller.Start()
	h.End(syscall.SIGTERM)
	h.Later()
	h.Start("")
	f.controller.Join(h.Host, "esx0", map[string]string{"rack": "a"})
	remarked := strings.Replace(fleetText, "{name: db,", "{name: db, remark: ours,", 1)
	f.controller.Define(remarked)
	f.connect(0, 3, "p-web", "web")
	f.connect(0, 4, "p-web2", "web")
	between := f.stream("p-web@0", "p-web2@0", fleetMAC(0, 3), fleetMAC(0, 4))

	f.controller.End(syscall.SIGKILL)
	h.End(syscall.SIGKILL)
	h.Earlier()
	h.Start("")
	h.Up("p-web", "p-web2", "uplink1")
	s, err := h.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.has("the host's warnings", strings.Join(s.Agent.Warnings, "\n"), "portGroup dvs/db: remark is not active")
	f.connect(0, 5, "p-db", "db")
	f.controller.Start()
	f.inState("esx0", api.HostWarning)
	h.End(syscall.SIGTERM)
	h.Later()
	h.Start("")
	f.inState("esx0", api.HostUp)

	out := f.controller.Define(strings.Replace(remarked, "{name: web,", "{name: web, security: {tomorrow: true},", 1))
	if len(out.Waiting) > 0 {
		t.Errorf("a security field that all know: %+v", out)
	}
	h.End(syscall.SIGTERM)
	h.Earlier()
	err = h.Heddle("agent")
	if err == nil {
		t.Fatal("the version before starts without a security field")
	}
	f.has("the refusal", err.Error(), "portGroup dvs/web: security.tomorrow", "--allow-unprotected",
		"Install the later version again")
	h.Args = []string{"--allow-unprotected"}
	h.Start("")
	h.Up("p-web", "p-web2", "p-db", "uplink1")
	h.End(syscall.SIGTERM)
	h.Args = nil
	h.Later()
	h.Start("")
	f.inState("esx0", api.HostUp)
	f.whole("between two guests", between)
}
