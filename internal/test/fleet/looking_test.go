package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// looked is three hosts that have joined, with a guest of the distributed switch each.
func looked(t *testing.T) *fleet {
	t.Helper()
	f := newFleetSized(t, 3, ownConfig, "own1", "own2")
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(fleetText); len(out.Hosts) != len(f.hosts) || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	f.allUp()
	return f
}

// allUp waits until all hosts are connected and have the definition.
func (f *fleet) allUp() {
	f.t.Helper()
	for n := range f.hosts {
		name := fmt.Sprintf("esx%d", n)
		f.controller.Await(name+" is up", func() bool { return f.controller.StateOf(name) == api.HostUp })
	}
}

// shows makes sure what a command that asks the hosts of the controller prints.
func (f *fleet) shows(status int, out, errs string, args ...string) {
	f.t.Helper()
	gotOut, gotErrs, got := f.controller.Heddle(args...)
	if gotOut != out || gotErrs != errs || got != status {
		f.t.Errorf("heddle %s: status %d\n%s%s\nwanted: status %d\n%s%s", strings.Join(args, " "), got, gotOut, gotErrs,
			status, out, errs)
	}
}

const portsOfAll = `HOST  SWITCH  PORT   PORT GROUP  VLAN       STATE  UPLINK   SOURCE    PROBLEM
esx0  dvs     p-web  web         access 10  up     uplink1  run-time  -
esx1  dvs     p-web  web         access 10  up     uplink1  run-time  -
esx2  dvs     p-web  web         access 10  up     uplink1  run-time  -
`

// The ports of all hosts are in one table; a host that is away is named, and its ports are shown as they were.
func TestLookingAtTheFleet_PortsOfAllHosts(t *testing.T) {
	testkit.Long(t, "has hosts that go away; TestLookingAtTheFleet_HostsOfOtherControllers shows all hosts")
	t.Parallel()
	f := looked(t)
	f.shows(0, portsOfAll, "", "port", "list", "--switch", "dvs")
	f.shows(0, portsOfAll, "", "--controller", f.controller.Socket(), "port", "list", "--switch", "dvs")
	one, _, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(portsOfAll, "HOST  ", ""), "esx0  ", ""), "esx1")
	f.shows(0, one, "", "port", "list", "--switch", "dvs", "--host", "esx1")
	f.shows(1, "", "heddle: the cluster has no host \"esx9\": see heddle host list\n", "port", "list", "--host", "esx9")
	f.shows(1, "", "heddle: there is no switch dvz; did you mean dvs?\n", "port", "list", "--switch", "dvz")

	f.hosts[1].End(syscall.SIGKILL)
	f.controller.Await("esx1 is away", func() bool { return f.controller.StateOf("esx1") == api.HostDisconnected })
	away := "heddle: host esx1 does not answer: it is not connected to a controller\n"
	lines := strings.SplitAfter(portsOfAll, "\n")
	f.shows(1, lines[0]+lines[1]+lines[3]+
		"esx1  dvs     p-web  web         -          stale  -        -         was up\n", away,
		"port", "list", "--switch", "dvs")
	f.shows(1, "", away, "port", "list", "--host", "esx1")
	out, _, _ := f.controller.Heddle("port", "list", "--switch", "dvs", "-o", "json")
	var list []struct {
		Host, Name, State string
		Stale             bool
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || fmt.Sprint(list) !=
		"[{esx0 p-web up false} {esx2 p-web up false} {esx1 p-web up true}]" {
		t.Errorf("%v: %v", err, list)
	}
}

// eventLine is a line of "heddle events -o json" over all hosts.
type eventLine struct {
	Host string `json:"host"`
	event.Event
}

// eventsOf is a "heddle events -o json --last 0" over all hosts.
type eventsOf struct {
	cmd  *exec.Cmd
	errs watchedText
	done chan struct{}

	mu    sync.Mutex
	lines []eventLine
	bad   []string
}

func (f *fleet) events(args ...string) *eventsOf {
	f.t.Helper()
	e := &eventsOf{done: make(chan struct{}),
		cmd: f.controller.Command(append([]string{"events", "-o", "json", "--last", "0"}, args...)...)}
	out, err := e.cmd.StdoutPipe()
	if err == nil {
		e.cmd.Stderr = &e.errs
		err = e.cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	go func() {
		defer close(e.done)
		for s := bufio.NewScanner(out); s.Scan(); {
			var l eventLine
			err := json.Unmarshal(s.Bytes(), &l)
			e.mu.Lock()
			if e.lines = append(e.lines, l); err != nil {
				e.bad = append(e.bad, s.Text())
			}
			e.mu.Unlock()
		}
	}()
	return e
}

// has reports how many events of a host have these words.
func (e *eventsOf) has(host, text string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lines {
		if l.Host == host && strings.Contains(l.Text, text) {
			n++
		}
	}
	return n
}

// end interrupts it, and returns what it printed.
func (e *eventsOf) end(t *testing.T) []eventLine {
	t.Helper()
	if err := e.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	<-e.done
	if err := e.cmd.Wait(); err != nil {
		t.Errorf("an interrupted command: %v", err)
	}
	if len(e.bad) > 0 {
		t.Errorf("no JSON: %q", e.bad)
	}
	return e.lines
}

// kept are the events that a host keeps of its present agent.
func (f *fleet) kept(n int) (list []event.Event) {
	f.t.Helper()
	err := f.hosts[n].Events(f.t.Context(), api.Follow{Last: -1, NoFollow: true}, func(b api.Events) error {
		list = append(list, b.Events...)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// toggles blocks a port and unblocks it, which are two events.
func (f *fleet) toggles(n int, port string) {
	f.t.Helper()
	f.hosts[n].must("port", "block", port)
	f.hosts[n].must("port", "unblock", port)
}

// One stream has the events of all hosts, each once, through the end of the controller and of an agent.
func TestLookingAtTheFleet_EventsOfAllHosts(t *testing.T) {
	testkit.Long(t, "ends controllers and agents; TestLookingAtTheFleet_PastEventsInOrder has events of all hosts")
	t.Parallel()
	f := looked(t)
	var begin [3]int
	for n := range f.hosts {
		begin[n] = len(f.kept(n))
	}
	e := f.events()
	seen := func(n, times int) {
		t.Helper()
		f.controller.Await(fmt.Sprintf("%d events of host %d are seen", times, n), func() bool {
			return e.has(fmt.Sprintf("esx%d", n), "unblocked") == times
		})
	}
	f.controller.Await("the stream follows", func() bool { f.toggles(0, "p-web"); return e.has("esx0", "blocked") > 0 })
	f.controller.Await("all of it is seen", func() bool {
		return e.has("esx0", "unblocked") == count(f.kept(0)[begin[0]:], "unblocked")
	})
	first := e.has("esx0", "unblocked")

	f.toggles(1, "p-web")
	seen(1, 1)
	f.controller.End(syscall.SIGKILL)
	f.toggles(1, "p-web")
	f.toggles(2, "p-web")
	f.controller.Start()
	seen(1, 2)
	seen(2, 1)

	before := f.kept(2)[begin[2]:]
	f.hosts[2].End(syscall.SIGKILL)
	f.controller.Await("it says that the host is away", func() bool {
		return strings.Contains(e.errs.String(), "host esx2 does not answer")
	})
	f.hosts[2].Start("")
	f.hosts[2].Up("p-web")
	f.toggles(2, "p-web")
	seen(2, 2)
	f.toggles(0, "p-web")
	seen(0, first+1)

	got := map[string][]string{}
	for _, l := range e.end(t) {
		got[l.Host] = append(got[l.Host], fmt.Sprint(l.Seq, " ", l.Text))
	}
	for n, want := range [][]event.Event{f.kept(0)[begin[0]:], f.kept(1)[begin[1]:], slices.Concat(before, f.kept(2))} {
		var texts []string
		for _, v := range want {
			texts = append(texts, fmt.Sprint(v.Seq, " ", v.Text))
		}
		name := fmt.Sprintf("esx%d", n)
		if have := got[name]; len(have) < count(want, "unblocked") || !subsequence(have, texts) {
			t.Errorf("of %s came\n%s\nof\n%s", name, strings.Join(have, "\n"), strings.Join(texts, "\n"))
		}
	}
	for _, part := range []string{"no controller answers", "host esx2 answers"} {
		if !strings.Contains(e.errs.String(), part) {
			t.Errorf("it does not say %q:\n%s", part, e.errs.String())
		}
	}
}

// A second run goes on where the first was: it prints what happened meanwhile, also while no controller was there, each
// event once. It says where an agent has begun anew, and prints only what is asked for.
func TestLookingAtTheFleet_EventsAreResumed(t *testing.T) {
	testkit.Long(t, "TestLookingAtTheFleet_PastEventsInOrder has events of all hosts")
	t.Parallel()
	f := looked(t)
	at := filepath.Join(t.TempDir(), "events.at")
	begin := [2]int{len(f.kept(0)), len(f.kept(1))}
	args := []string{"--resume", at, "--hosts", "esx[01]", "--switch", "dvs", "--port-group", "web", "--kind",
		"blocked"}
	e := f.events(args...)
	f.controller.Await("the stream follows", func() bool { f.toggles(0, "p-web"); return e.has("esx0", "blocked") > 0 })
	f.toggles(1, "p-web")
	f.controller.Await("both are seen", func() bool {
		return e.has("esx0", "unblocked") == count(f.kept(0)[begin[0]:], "unblocked") && e.has("esx1", "unblocked") > 0
	})
	lines := e.end(t)

	f.controller.End(syscall.SIGKILL)
	f.toggles(0, "p-web")
	f.toggles(2, "p-web")
	f.controller.Start()
	f.allUp()
	f.toggles(1, "p-web")
	out, errs, status := f.controller.Heddle(append([]string{"events", "--no-follow", "-o", "json"}, args...)...)
	if status != 0 || errs != "" {
		t.Errorf("status %d: %s", status, errs)
	}
	for line := range strings.Lines(out) {
		var l eventLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	for n := range 2 {
		var got, want []string
		for _, l := range lines {
			if l.Host == fmt.Sprintf("esx%d", n) {
				got = append(got, fmt.Sprint(l.Seq, " ", l.Text))
			}
		}
		for _, v := range f.kept(n)[begin[n]:] {
			if v.Kind == event.Blocked {
				want = append(want, fmt.Sprint(v.Seq, " ", v.Text))
			}
		}
		if !subsequence(got, want) || len(got) < 4 {
			t.Errorf("of esx%d both runs printed\n%s\nof\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if len(slices.DeleteFunc(lines, func(l eventLine) bool { return l.Host == "esx0" || l.Host == "esx1" })) > 0 {
		t.Error("events of a host are printed that was not asked for")
	}

	f.hosts[1].End(syscall.SIGKILL)
	f.hosts[1].Start("")
	f.hosts[1].Up("p-web")
	f.controller.Await("it says that the agent has begun anew", func() bool {
		_, errs, _ = f.controller.Heddle(append([]string{"events", "--no-follow"}, args...)...)
		return strings.Contains(errs, "host esx1: its agent has begun anew")
	})
	out, errs, status = f.controller.Heddle(append([]string{"events", "--no-follow"}, args...)...)
	if out != "" || errs != "" || status != 0 {
		t.Errorf("where nothing happened: status %d: %s%s", status, out, errs)
	}
}

func count(list []event.Event, text string) (n int) {
	for _, v := range list {
		if strings.Contains(v.Text, text) {
			n++
		}
	}
	return n
}

// subsequence reports whether have is in want, in this order and each once, without a gap but at the beginning and the
// end.
func subsequence(have, want []string) bool {
	if len(have) == 0 {
		return true
	}
	i := slices.Index(want, have[0])
	return i >= 0 && i+len(have) <= len(want) && slices.Equal(have, want[i:i+len(have)])
}

// The past of all hosts is printed in the order of time.
func TestLookingAtTheFleet_PastEventsInOrder(t *testing.T) {
	t.Parallel()
	f := looked(t)
	for _, n := range []int{2, 0, 1} {
		f.toggles(n, "p-web")
	}
	out, errs, status := f.controller.Heddle("events", "--no-follow", "--last", "6", "--port", "p-web", "-o", "json")
	var got []string
	var last time.Time
	for line := range strings.Lines(out) {
		var l eventLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Time.Before(last) {
			t.Errorf("%s comes after %s", l.Time, last)
		}
		last = l.Time
		got = append(got, l.Host+" "+string(l.Kind))
	}
	want := []string{"esx2 blocked", "esx2 blocked", "esx0 blocked", "esx0 blocked", "esx1 blocked", "esx1 blocked"}
	if !slices.Equal(got, want) || errs != "" || status != 0 {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
}

// Hosts are sent everything again without losing a frame; one that is away is named.
func TestLookingAtTheFleet_HostsAreSynced(t *testing.T) {
	t.Parallel()
	f := looked(t)
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	f.shows(0, `HOST  BEFORE  DIFFERS  SINCE  STATE  PROBLEM
esx0  up            0  -      up     -
esx1  up            0  -      up     -
esx2  up            0  -      up     -
`, "", "host", "sync")
	f.whole("while hosts are sent everything again", between)
	f.hosts[2].End(syscall.SIGKILL)
	f.controller.Await("esx2 is away", func() bool { return f.controller.StateOf("esx2") == api.HostDisconnected })
	f.shows(1, `HOST  BEFORE        DIFFERS  SINCE  STATE         PROBLEM
esx2  disconnected        0  -      disconnected  -
`, "", "host", "sync", "esx2")
	f.shows(1, "", "heddle: the cluster has no host \"esx9\": see heddle host list\n", "host", "sync", "esx9")
}

// What differs on a host that was away while the definition changed is named, with the change that it lacks first, also
// by a controller that has started since. Looking sends nothing.
func TestLookingAtTheFleet_DriftHasADate(t *testing.T) {
	testkit.Long(t, "waits for a host and a controller to come back")
	t.Parallel()
	f := looked(t)
	f.hosts[2].End(syscall.SIGKILL)
	f.controller.Await("esx2 is away", func() bool { return f.controller.StateOf("esx2") == api.HostDisconnected })
	def, err := f.controller.Definition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	changes := make([]*api.Defined, 2)
	for i, vlan := range []string{"access: 77", "access: 78"} {
		text := regexp.MustCompile(`(- name: web\n(?:\s+\S.*\n)*?\s+)access: \d+`).ReplaceAllString(def.Content,
			"${1}"+vlan)
		if changes[i], err = f.controller.Fleet.Define(t.Context(), api.Define{File: "f.yaml", Content: text,
			Message: vlan}); err != nil || len(changes[i].Changes) != 1 {
			t.Fatalf("%v: %+v", err, changes[i])
		}
	}
	for _, host := range []string{"esx0", "esx1"} {
		f.controller.Await(host+" has it", func() bool { return f.controller.StateOf(host) == api.HostUp })
	}
	drift := func() (list *api.SyncedHosts) {
		t.Helper()
		list, err := f.controller.Sync(t.Context(), "", time.Minute, true)
		if err != nil || len(list.Hosts) != 3 {
			t.Fatalf("%v: %+v", err, list)
		}
		for _, h := range list.Hosts[:2] {
			if len(h.Drift) > 0 || h.State != api.HostUp {
				t.Errorf("%s has all, and it says %+v", h.Host, h)
			}
		}
		return list
	}
	lacks := drift().Hosts[2]
	if lacks.State != api.HostDisconnected || len(lacks.Drift) != 1 || len(lacks.Differences) != 1 {
		t.Fatalf("%+v", lacks)
	}
	one := lacks.Drift[0]
	if one.Object != "portGroup dvs/web" || one.Kind != api.DriftOlder || one.Revision != changes[0].Revision ||
		one.Who != "root" || one.Message != "access: 77" || time.Since(one.Since).Abs() > time.Hour {
		t.Errorf("%+v", one)
	}
	out, errs, status := f.controller.Heddle("host", "sync", "esx2", "--dry-run")
	want := fmt.Sprintf("esx2: portGroup dvs/web is older since %s (revision %d, by root: access: 77)",
		one.Since.Local().Format(time.DateTime), one.Revision)
	if !strings.Contains(out, want) || errs != "" || status != 1 {
		t.Errorf("status %d, it prints\n%s%s\nwant\n%s", status, out, errs, want)
	}

	f.controller.End(syscall.SIGKILL)
	f.controller.Start()
	for _, host := range []string{"esx0", "esx1"} {
		f.controller.Await(host+" is back", func() bool { return f.controller.StateOf(host) == api.HostUp })
	}
	if again := drift().Hosts[2]; len(again.Drift) > 0 {
		t.Errorf("a controller that has not heard of the host yet says %+v", again)
	}
	f.hosts[2].Start("")
	f.controller.Await("esx2 has it", func() bool { return f.controller.StateOf("esx2") == api.HostUp })
	if now := drift().Hosts[2]; len(now.Drift) > 0 || now.State != api.HostUp {
		t.Errorf("once it is back: %+v", now)
	}
}

// capturedLine is a line of "heddle capture -o json" over all hosts.
type capturedLine struct {
	Time           time.Time
	HostName, Port string
	Direction      string
	Stage          string
}

// Frames of all hosts that have the port are captured together, in the order of their time.
func TestLookingAtTheFleet_CaptureOnAllHosts(t *testing.T) {
	testkit.Long(t, "captures on three hosts that come and go; TestS84_CapturesShowFramesInTheTunnel and the "+
		"package host have captures")
	t.Parallel()
	f := looked(t)
	begin := func(args ...string) (*exec.Cmd, *watchedText, *watchedText) {
		t.Helper()
		cmd := f.controller.Command(append([]string{"capture"}, args...)...)
		out, errs := &watchedText{}, &watchedText{}
		cmd.Stdout, cmd.Stderr = out, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		f.controller.Await("it captures", func() bool { return strings.Contains(errs.String(), "capturing") })
		return cmd, out, errs
	}
	file := filepath.Join(t.TempDir(), "all.pcapng")
	lines, out, _ := begin("p-web", "-o", "json")
	write, _, wrote := begin("p-web", "-w", file)
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() { // until both captures have begun on all hosts and have what they wait for
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				f.guests["p-web@0"].Send(cable.Frame(fleetMAC(1, 3), fleetMAC(0, 3), 0, fmt.Sprint("frame ", n)))
			}
		}
	})
	f.controller.Await("both hosts are seen", func() bool {
		return strings.Contains(out.String(), `"hostName":"esx0"`) && strings.Contains(out.String(), `"hostName":"esx1"`)
	})
	if err := errors.Join(lines.Process.Signal(syscall.SIGINT), lines.Wait()); err != nil {
		t.Error(err)
	}
	three, _, status := f.controller.Heddle("capture", "p-web", "-o", "json", "-c", "3")
	if n := strings.Count(three, "\n"); n != 3 || status != 0 {
		t.Errorf("%d frames, status %d", n, status)
	}
	f.controller.Await("the file has both hosts", func() bool {
		text, _ := os.ReadFile(file)
		return bytes.Contains(text, []byte("esx0:p-web")) && bytes.Contains(text, []byte("esx1:p-web"))
	})
	close(stop)
	sending.Wait()
	var last time.Time
	hosts := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		var l capturedLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Port != "p-web" || l.Time.Before(last) {
			t.Errorf("%v: %s after %s", err, line, last)
		}
		last, hosts[l.HostName] = l.Time, true
	}
	if !hosts["esx0"] || !hosts["esx1"] || hosts[""] {
		t.Errorf("of %v:\n%s", hosts, out)
	}

	f.hosts[1].End(syscall.SIGKILL)
	f.controller.Await("esx1 is away", func() bool { return f.controller.StateOf("esx1") == api.HostDisconnected })
	if err := write.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := write.Wait(); err == nil || write.ProcessState.ExitCode() != 1 ||
		!strings.Contains(wrote.String(), "host esx1") || !strings.Contains(wrote.String(), "frames captured") {
		t.Errorf("%v:\n%s", err, wrote)
	}
	traced, _, status := f.controller.Heddle("trace", "--pcap", file, "--from", "esx0:p-web")
	if status != 1 || !strings.Contains(traced, " esx0  p-web ") || strings.Contains(traced, " esx1  p-web ") {
		t.Errorf("status %d\n%s", status, traced)
	}
	f.shows(1, "", "heddle: there is no port or uplink p-wbe; did you mean p-web?\n", "capture", "p-wbe")
}

// watchedText is what a command writes, read while it does.
type watchedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watchedText) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *watchedText) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// A trace from a port of one host to a port of another is one story with one verdict, whatever host has the reason.
func TestLookingAtTheFleet_TraceAcrossHosts(t *testing.T) {
	testkit.Long(t, "traces across hosts for each reason; the package host has traces, and cli has what joins them")
	t.Parallel()
	f := looked(t)
	f.connect(1, 4, "p-db", "db")
	for _, row := range []struct {
		args   string
		status int
		says   []string
	}{
		{"esx0:p-web esx1:p-web", 0, []string{"yes: esx0:p-web reaches esx1:p-web, if the physical network",
			"ARP request  esx0:p-web  esx1:p-web  yes      leaves by uplink1, VLAN 10; comes in by uplink1\n",
			"IPv4 packet  esx1:p-web  esx0:p-web  yes      leaves by uplink1, VLAN 10; comes in by uplink1\n",
			"between: not known: the frame leaves esx0 by uplink1 (eno2), VLAN 10"}},
		{"esx0:p-web 02:00:00:00:03:02 --ip 192.0.2.1,192.0.2.2 --tcp 443", 0, []string{
			"yes: esx0:p-web reaches esx2:p-web", "\non host esx0\n",
			"  to        uplink1 (uplink, device eno2): VLAN 10, 64 bytes",
			"\non host esx2, at uplink1\n", "  to        p-web (port, device p-web): untagged, 60 bytes"}},
		{"esx0:p-web p-db", 1, []string{"no: esx0:p-web does not reach esx1:p-db: the ARP request ends on host esx1",
			"fix, on esx1: heddle port move p-db --port-group web",
			"not p-db (other-vlan)"}},
		{"esx0:p-web p-db --src-mac 02:00:00:00:99:99 --ip 192.0.2.2", 1, []string{"the frame ends on host esx0",
			"dropped (forged-transmit): nobody gets it"}},
		{"esx1:p-web p-db", 1, []string{"no: p-web does not reach p-db", "note: both are on host esx1"}},
		{"p-web p-db", 2, []string{"3 hosts have p-web: say which, as esx0:p-web or esx1:p-web or esx2:p-web"}},
		{"esx0:p-web p-no", 1, []string{"no host that answers has a port or guest p-no"}},
	} {
		t.Run(row.args, func(t *testing.T) {
			out, errs, status := f.controller.Heddle(append([]string{"trace"}, strings.Fields(row.args)...)...)
			if status != row.status {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
			for _, text := range row.says {
				if !strings.Contains(out+errs, text) {
					t.Errorf("it does not say %q:\n%s%s", text, out, errs)
				}
			}
		})
	}
}

// Each of several controllers shows all hosts, whichever of them a host is connected to, also when one has ended.
func TestLookingAtTheFleet_HostsOfOtherControllers(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	all := f.controllers()
	for n, h := range f.hosts {
		token, err := all[0].JoinToken(t.Context(), api.JoinTerms{Labels: map[string]string{"rack": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Join(t.Context(), api.Join{Controller: all[n+1].Address, Token: token.Token,
			Name: fmt.Sprintf("esx%d", n)}); err != nil {
			t.Fatal(err)
		}
	}
	if out := all[0].Define(fleetText); len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
	}
	lines := strings.SplitAfter(portsOfAll, "\n")
	want := lines[0] + lines[1] + lines[2]
	for _, c := range all {
		c.Await(c.Name+" shows all ports", func() bool {
			out, errs, status := c.Heddle("port", "list", "--switch", "dvs")
			return out == want && errs == "" && status == 0
		})
	}
	if out, errs, status := all[0].Heddle("trace", "esx0:p-web", "esx1:p-web"); status != 0 {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	for _, c := range all {
		if _, errs, status := c.Heddle("host", "token"); status != 0 {
			t.Errorf("a token at %s: %s", c.Name, errs)
		}
	}
	audited(t, all[0], 0, "", all[:])
	all[2].End(syscall.SIGKILL)
	audited(t, all[1], 1, "heddle: controller controller3 does not answer: what was done there is missing\n", all[:2])
	all[0].Await("the ports of hosts that have moved are shown", func() bool {
		out, _, status := all[0].Heddle("port", "list", "--switch", "dvs")
		return out == want && status == 0
	})
}
