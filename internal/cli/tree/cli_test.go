package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/version"
)

// standIn is a substitute for an agent. It gives the answers that the test has set, and records the requests.
type standIn struct {
	moves []api.PortMove
	// silenced is the move that the silence of a port is part of.
	silenced api.PortMove
	trial    *api.Trial
	state    api.State
	stats    []api.Stats
	macs     []api.MAC
	// neighbours is the answer about who has which address.
	neighbours api.Neighbours
	// forgotten are the requests to forget MACs.
	forgotten []api.ForgetMACs
	// readings are the answers about counters, one after the other; then stats is the answer.
	readings [][]api.Stats
	accounts []api.PortAccount
	metrics  string
	applied  api.Applied
	// membership is the host's part in a cluster.
	membership api.Membership
	health     api.HostHealth
	// maintained is the answer about an uplink's maintenance; applied is that about the change.
	maintained api.Maintained
	configs    []api.AppliedConfig
	running    string
	events     []api.Events
	trace      diagnose.Report
	advice     api.Advice
	err        error
	asked      []any
	// adoption is the answer about one host port, hostPorts the list of all.
	adoption  api.Adoption
	then      []api.Adoption // the answers about the adoption, one for each query
	hostPorts []api.HostPort
	captured  []api.CaptureEvent
	// capturing is called instead of answering Capture.
	capturing func(ctx context.Context, emit func(api.CaptureEvent) error) error
	flows     flowAnswers
	// hang is called instead of answering Reconnect; the answer comes after the caller has left.
	hang func()
}

func (s *standIn) note(q any) error { s.asked = append(s.asked, q); return s.err }

func (s *standIn) State(context.Context) (*api.State, error) { return &s.state, s.err }
func (s *standIn) Stats(context.Context) ([]api.Stats, error) {
	if len(s.readings) > 0 {
		s.stats, s.readings = s.readings[0], s.readings[1:]
	}
	return s.stats, s.err
}
func (s *standIn) Metrics(context.Context) (string, error)             { return s.metrics, s.err }
func (s *standIn) Vitals(context.Context) ([]api.Vitals, error)        { return nil, s.err }
func (s *standIn) Accounts(context.Context) ([]api.PortAccount, error) { return s.accounts, s.err }
func (s *standIn) Foresee(context.Context, api.Foresee) (*diagnose.Foreseen, error) {
	return nil, s.err
}

func (s *standIn) Trace(_ context.Context, q diagnose.Request) (*diagnose.Report, error) {
	return &s.trace, s.note(q)
}
func (s *standIn) Advise(_ context.Context, q api.AdviseRequest) (*api.Advice, error) {
	return &s.advice, s.note(q)
}
func (s *standIn) Neighbours(_ context.Context, q api.NeighbourQuery) (*api.Neighbours, error) {
	return &s.neighbours, s.note(q)
}
func (s *standIn) MACs(context.Context) ([]api.MAC, error) { return s.macs, s.err }
func (s *standIn) ForgetMACs(_ context.Context, q api.ForgetMACs) ([]api.MAC, error) {
	s.forgotten = append(s.forgotten, q)
	return slices.DeleteFunc(slices.Clone(s.macs), func(m api.MAC) bool { return m.Kind != "learned" }), s.err
}
func (s *standIn) Stop(context.Context) error                        { return s.note("stop") }
func (s *standIn) HostPorts(context.Context) ([]api.HostPort, error) { return s.hostPorts, s.err }
func (s *standIn) Adoption(context.Context, api.HostPortName) (*api.Adoption, error) {
	if len(s.then) > 0 {
		s.adoption, s.then = s.then[0], s.then[1:]
	}
	return &s.adoption, s.err
}
func (s *standIn) Trial(context.Context) (*api.Trial, error) { return s.trial, s.err }
func (s *standIn) ConfirmChange(context.Context) (*api.Trial, error) {
	return s.trial, s.note("confirm")
}
func (s *standIn) Adopt(_ context.Context, q api.Adopt) (*api.Adoption, error) {
	return &s.adoption, s.note(q)
}
func (s *standIn) ConfirmAdoption(_ context.Context, q api.HostPortName) (*api.Adoption, error) {
	return &s.adoption, s.note(q)
}
func (s *standIn) ReleaseAdoption(_ context.Context, q api.Release) (*api.Adoption, error) {
	return &s.adoption, s.note(q)
}
func (s *standIn) Block(_ context.Context, q api.Block) (*api.Applied, error) {
	q.ReadAt = 0
	return &s.applied, s.note(q)
}
func (s *standIn) Move(_ context.Context, q api.Move) (*api.Applied, error) {
	q.ReadAt = 0
	return &s.applied, s.note(q)
}
func (s *standIn) RunBenchmark(context.Context, api.HostBenchmark) error { return s.err }
func (s *standIn) EndBenchmark(context.Context, api.EndBenchmark) (*api.BenchmarkCounts, error) {
	return &api.BenchmarkCounts{}, s.err
}
func (s *standIn) NetworkHealth(context.Context) (*api.HostHealth, error) { return &s.health, s.err }
func (s *standIn) Membership(context.Context) (*api.Membership, error)    { return &s.membership, s.err }
func (s *standIn) Leave(context.Context) (*api.Membership, error)         { return &s.membership, s.err }
func (s *standIn) HandOver(_ context.Context, q api.HandOver) (*api.Applied, error) {
	applied := s.applied
	applied.DryRun = q.DryRun
	return &applied, s.note(q)
}
func (s *standIn) Join(_ context.Context, q api.Join) (*api.Membership, error) {
	s.asked = append(s.asked, q)
	return &s.membership, s.err
}

func (s *standIn) Maintain(_ context.Context, q api.Maintain) (*api.Maintained, error) {
	q.ReadAt = 0
	out := s.maintained
	applied := s.applied
	applied.DryRun = q.DryRun
	out.Use, out.Applied = q.Use, &applied
	return &out, s.note(q)
}
func (s *standIn) Progress(context.Context) (*api.Progress, error) { return &api.Progress{}, s.err }
func (s *standIn) Expect(_ context.Context, q api.Expect) error    { return s.note(q) }
func (s *standIn) PortMoves(_ context.Context, q api.PortMoveOf) ([]api.PortMove, error) {
	return s.moves, s.err
}
func (s *standIn) CopyMovingPort(_ context.Context, q api.PortMoveOf) (*api.PortMove, error) {
	return &api.PortMove{}, s.note(q)
}
func (s *standIn) SilencePort(_ context.Context, q api.PortMoveOf) (*api.PortMove, error) {
	return &s.silenced, s.note(q)
}
func (s *standIn) CancelMove(_ context.Context, q api.PortMoveOf) error       { return s.note(q) }
func (s *standIn) ReleaseMovedPort(_ context.Context, q api.PortMoveOf) error { return s.note(q) }
func (s *standIn) Activate(_ context.Context, q api.Activate) error           { return s.note(q) }
func (s *standIn) ConnectIncoming(_ context.Context, q api.Incoming) (*api.Applied, error) {
	return &s.applied, s.note(arriving{q.Connect})
}
func (s *standIn) Disconnect(_ context.Context, q api.Disconnect) error {
	return s.note(q)
}

func (s *standIn) Events(ctx context.Context, q api.Follow, emit func(api.Events) error) error {
	if err := s.note(q); err != nil {
		return err
	}
	for _, b := range s.events {
		if err := emit(b); err != nil {
			return err
		}
	}
	return nil
}

func (s *standIn) Apply(_ context.Context, q api.Apply) (*api.Applied, error) {
	q.ReadAt = 0
	return &s.applied, s.note(q)
}

func (s *standIn) Connect(_ context.Context, q api.Connect) (*api.Applied, error) {
	return &s.applied, s.note(q)
}

func (s *standIn) Reconnect(ctx context.Context, q api.Connect) (*api.Applied, error) {
	if s.hang != nil {
		s.hang()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &s.applied, s.note(again{q})
}

// again is a port that was connected with Reconnect.
type again struct{ api.Connect }

// arriving is a port that was connected for a guest that will arrive.
type arriving struct{ api.Connect }

// connected returns the request of an agent for a port.
func connected(p spec.Port) api.Connect { return api.Connect{Port: p} }

// console runs the program against a stand-in.
type console struct {
	t      *testing.T
	dir    string
	colour bool
	stdin  string
	asking bool
	width  int // of the terminal; 0 for none
	// release is the version of the program's package.
	release string
}

func newConsole(t *testing.T, s *standIn) *console {
	t.Helper()
	c := &console{t: t, dir: t.TempDir()}
	l, err := api.Listen(api.SocketPath(c.dir, "test"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.Serve(ctx, l, s, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() { cancel(); <-done })
	return c
}

func (c *console) run(args ...string) (stdout, stderr string, status int) {
	c.t.Helper()
	return c.runIn(context.Background(), args...)
}

func (c *console) runIn(ctx context.Context, args ...string) (stdout, stderr string, status int) {
	c.t.Helper()
	var out, errs bytes.Buffer
	env := map[string]string{"HEDDLE_RUN_DIR": c.dir, "HEDDLE_AGENT": "test"}
	d := cli.Deps{Stdin: strings.NewReader(c.stdin), Stdout: &out, Stderr: &errs, Getenv: func(k string) string {
		return env[k]
	}, Colour: c.colour, Asking: c.asking, Width: c.width, Release: c.release}
	status = Run(ctx, d, args)
	return out.String(), errs.String(), status
}

func (c *console) must(args ...string) string {
	c.t.Helper()
	out, errs, status := c.run(args...)
	if status != 0 {
		c.t.Fatalf("%v: status %d, %s", args, status, errs)
	}
	return out
}

// furnished returns a stand-in with one object of every kind, and the longest possible names.
func furnished() *standIn {
	long := strings.Repeat("n", 63)
	rows := []plan.Row{{Policy: "vlan", Value: plan.FieldValueOf(plan.VLAN{Mode: plan.VLANAccess, ID: 100}),
		From: plan.Source{Level: plan.FromPortGroup, Name: "web"}},
		{Policy: "security.promiscuous", Value: plan.FieldValueOf("reject"),
			From: plan.Source{Level: plan.FromBuiltIn}}}
	s := &standIn{state: api.State{
		Switches: []api.Switch{{Name: "lab", Kind: spec.Distributed, MTU: 9000, PortGroups: 1, Ports: 2, PortsUp: 1,
			Uplinks: []string{"uplink1"}, UplinksUp: 1, ReversePath: true}},
		PortGroups: []api.PortGroup{{Switch: "lab", Name: "web", VLAN: plan.VLAN{Mode: plan.VLANAccess, ID: 100},
			Ports: 2, PortsUp: 1, Overrides: []string{"blocked"}, Reset: true, Policy: rows}},
		Uplinks: []api.Uplink{{Switch: "lab", Name: "uplink1", Device: "eno1", State: api.Up, MAC: "02:00:00:00:00:f1",
			MTU: 9000, VLANs: plan.AllVLANs()}},
		Ports: []api.Port{
			{Switch: "lab", Name: "vm1/eth0", PortGroup: "web", Role: spec.VNIC, Origin: api.FromFile, Number: 1,
				Device: "tap0", State: api.Up, VLAN: plan.VLAN{Mode: plan.VLANAccess, ID: 100},
				MAC: "02:00:00:00:01:01", Effective: rows},
			{Switch: long, Name: long, PortGroup: long, Role: spec.VNIC, Origin: api.FromRun, Number: 2,
				State: api.Pending, Reason: "no device", VLAN: manyVLANs(), MAC: "02:00:00:00:01:02", Effective: rows},
		},
	}}
	s.stats = []api.Stats{{Switch: "lab", Name: "vm1/eth0",
		Counters: []api.Counter{{Name: "packetsInUnicast", Value: 12}, {Name: "packetsInBroadcast", Value: 3},
			{Name: "packetsInDropped", Value: 7}, {Name: "bytesInFromPnic"}},
		Extra: []api.Counter{{Name: "delivered", Value: 15}},
		Drops: []api.ReasonNo{{Reason: "forged-transmit", Value: 7}}, Refused: []api.ReasonNo{}}}
	s.macs = []api.MAC{{Switch: "lab", VLAN: plan.SegmentOf(100, false), MAC: "02:00:00:00:05:05", Port: "vm1/eth0",
		Kind: "learned", IdleSeconds: 4.2}, {Switch: "lab", VLAN: plan.SegmentOf(200, false), MAC: "02:00:00:00:01:01",
		Port: "vm1/eth0", Kind: "port"}}
	s.neighbours = *someNeighbours()
	return s
}

func listings() [][]string {
	return [][]string{{"switch", "list"}, {"switch", "show", "lab"}, {"portgroup", "list"},
		{"portgroup", "show", "web"}, {"uplink", "list"}, {"uplink", "show", "uplink1"},
		{"port", "list"}, {"port", "show", "vm1/eth0"}, {"mac", "list"}, {"mac", "show", "02:00:00:00:05:05"},
		{"segment", "neighbours"}, {"stats"}, {"stats", "vm1/eth0"}, {"show", "effective", "vm1/eth0"}}
}

func TestEveryListingHasThreeForms(t *testing.T) {
	c := newConsole(t, furnished())
	c.width = cli.TableWidth
	for _, args := range listings() {
		text := c.must(args...)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > cli.TableWidth {
				t.Errorf("%v: a line of %d characters: %s", args, n, line)
			}
		}
		var fromJSON, fromYAML any
		if err := json.Unmarshal([]byte(c.must(append(args, "-o", "json")...)), &fromJSON); err != nil {
			t.Errorf("%v -o json: %v", args, err)
		}
		if err := yaml.Unmarshal([]byte(c.must(append(args, "-o", "yaml")...)), &fromYAML); err != nil {
			t.Errorf("%v -o yaml: %v", args, err)
		}
		// The two decoders give numbers different types; as text they are the same.
		if a, b := asText(t, fromJSON), asText(t, fromYAML); a != b {
			t.Errorf("%v: JSON and YAML differ: %s", args, cmp.Diff(a, b))
		}
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTablesReadAsMeant(t *testing.T) {
	c := newConsole(t, furnished())
	const effective = "port vm1/eth0 in port group web of switch lab\n\nPOLICY                VALUE       FROM\n" +
		"vlan                  access 100  port group web\nsecurity.promiscuous  reject      built-in default\n"
	for _, want := range []struct {
		args []string
		text string
	}{
		{[]string{"switch", "list"}, "SWITCH  KIND          MTU  PORT GROUPS  PORTS UP  UPLINKS UP  UPLINKS\nlab     " +
			"distributed  9000            1  1 of 2    1 of 1      uplink1\n"},
		{[]string{"mac", "list", "--learned"}, "SWITCH  VLAN  MAC                PORT      KIND     IDLE\nlab     " +
			"100   02:00:00:00:05:05  vm1/eth0  learned    4s\n"},
		{[]string{"stats", "vm1/eth0"}, "port vm1/eth0 of switch lab\n\nCOUNTER                   " +
			"VALUE\npacketsInUnicast             12\npacketsInBroadcast            3\npacketsInDropped              " +
			"7\ndelivered                    15\ndropped, forged-transmit      7\n"},
		{[]string{"show", "effective", "vm1/eth0"}, effective}, {[]string{"port", "show", "vm1/eth0", "--policy"},
			effective},
	} {
		if d := cmp.Diff(want.text, c.must(want.args...)); d != "" {
			t.Errorf("%v: %s", want.args, d)
		}
	}
	if out := c.must("stats", "vm1/eth0", "--zero"); !strings.Contains(out, "bytesInFromPnic") {
		t.Errorf("--zero leaves counters out:\n%s", out)
	}
	if out := c.must("port", "list", "--state", "waiting", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("an empty list is %q", out)
	}
}

func TestColourIsForTerminalsOnly(t *testing.T) {
	c := newConsole(t, furnished())
	plainText := c.must("port", "list")
	if strings.Contains(plainText, "\x1b") {
		t.Error("colour without a terminal")
	}
	c.colour = true
	coloured := c.must("port", "list")
	if !strings.Contains(coloured, cli.Green+"up") || strings.NewReplacer(cli.Green, "", cli.Yellow, "", cli.Plain,
		"").Replace(coloured) != plainText {
		t.Errorf("colours move the columns:\n%q", coloured)
	}
}

func TestCommandsAskTheAgentForWhatWasSaid(t *testing.T) {
	s := furnished()
	c := newConsole(t, s)
	file := filepath.Join(t.TempDir(), "f.yaml")
	content := "switches: [{name: lab}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c.stdin = content
	yes := true
	for _, want := range []struct {
		args []string
		q    any
	}{
		{[]string{"port", "block", "p"}, api.Block{Port: "p", Blocked: true}},
		{[]string{"port", "unblock", "p"}, api.Block{Port: "p"}},
		{[]string{"port", "move", "p", "--port-group", "g"}, api.Move{Port: "p", PortGroup: "g"}},
		{[]string{"port", "disconnect", "p"}, api.Disconnect{Port: "p"}},
		{[]string{"port", "connect", "p", "--switch", "s", "--port-group", "g", "--device", "d", "--mac",
			"02:00:00:00:00:01"}, connected(spec.Port{Name: "p", Switch: "s", PortGroup: "g", Device: "d",
			MAC: "02:00:00:00:00:01"})},
		{[]string{"port", "connect", "q", "--port-group", "g", "--blocked", "--tx-uplink"},
			connected(spec.Port{Name: "q", PortGroup: "g", TxUplink: true, Policy: spec.Policy{Blocked: &yes}})},
		{[]string{"port", "connect", "h", "--port-group", "g", "--role", "host", "--address", "192.0.2.1/24", "--mtu",
			"1400"}, connected(spec.Port{Name: "h", PortGroup: "g", Role: spec.Host,
			Addresses: []string{"192.0.2.1/24"}, MTU: 1400})},
		{[]string{"apply", "-f", file, "--dry-run"}, api.Apply{File: file, Content: content, DryRun: true}},
		{[]string{"apply", "-f", "-"}, api.Apply{File: "<stdin>", Content: content}},
	} {
		s.asked = nil
		c.must(want.args...)
		if d := cmp.Diff([]any{want.q}, s.asked); d != "" {
			t.Errorf("%v: %s", want.args, d)
		}
	}
}

func TestApplyPrintsADifferenceAPersonCanRead(t *testing.T) {
	s := furnished()
	s.applied = api.Applied{DryRun: true, Warnings: []string{"no device"}, Changes: []api.Change{
		{Kind: api.Removed, Object: api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: "old"}},
		{Kind: api.Changed, Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab", Name: "web"},
			Field: "vlan.access", Old: plan.FieldValueOf(100), New: plan.FieldValueOf(200)},
		{Kind: api.Added, Object: api.ObjectRef{Kind: api.PortGroupObject, Switch: "lab", Name: "web"},
			Field: "blocked", New: plan.FieldValueOf(true)},
		{Kind: api.Added, Object: api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: "new"}},
		{Kind: api.Added, Object: api.ObjectRef{Kind: api.PortObject, Switch: "lab", Name: "new"}, Field: "device",
			New: plan.FieldValueOf("tap1")},
	}, Effects: []api.Effect{{Text: "12 ports of port group lab/web change vlan access 100 → access 200"}}}
	c := newConsole(t, s)
	c.stdin = "switches: [{name: lab}]\n"
	out, errs, _ := c.run("apply", "-f", "-", "--dry-run")
	want := "- port old\n~ port group lab/web\n  ~ vlan.access: 100 → 200\n  + blocked: true\n+ port new\n  + " +
		"device: tap1\n=> 12 ports of port group lab/web change vlan access 100 → access 200\nnothing was changed " +
		"(dry run)\n"
	if d := cmp.Diff(want, out); d != "" || errs != "heddle: warning: no device\n" {
		t.Errorf("%s\n%s", d, errs)
	}
	s.applied = api.Applied{ActiveAfterSeconds: 0.00425, ActiveAt: &api.Instant{Before: 1, After: 2},
		Changes: s.applied.Changes[:1]}
	if out, _, _ := c.run("apply", "-f",
		"-"); out != "- port old\nactive after 4.2 ms, for all ports at one instant\n" {
		t.Errorf("put into force: %q", out)
	}
	if out, _, _ := c.run("port", "move", "p", "--port-group", "g", "-o", "json"); !strings.Contains(out,
		`"activeAfterSeconds": 0.00425`) {
		t.Errorf("a move as JSON: %s", out)
	}
	s.applied = api.Applied{Changes: []api.Change{}}
	if out, _, _ := c.run("apply", "-f", "-"); out != "nothing changes\n" {
		t.Errorf("nothing to do: %q", out)
	}
	c.colour, s.applied = true, api.Applied{DryRun: true,
		Changes: []api.Change{{Kind: api.Added, Object: api.ObjectRef{Kind: api.PortObject, Switch: "lab",
			Name: "new"}}}}
	if out, _, _ := c.run("apply", "-f", "-", "--dry-run"); !strings.Contains(out, cli.Green+"+ port new") {
		t.Errorf("on a terminal: %q", out)
	}
}

func TestExitStatusSaysWhoseFaultItIs(t *testing.T) {
	s := furnished()
	c := newConsole(t, s)
	for _, want := range []struct {
		err    error
		status int
		text   string
	}{
		{api.NewError(api.Invalid, "f:1:1: one", "f:2:2: two"), cli.ExitUsage, "f:1:1: one\nf:2:2: two\n"},
		{api.NewError(api.NotFound, "no such port"), cli.ExitFailure, "heddle: no such port\n"},
		{api.NewError(api.Internal, "disk full"), cli.ExitFailure, "heddle: disk full\n"},
	} {
		s.err = want.err
		if _, errs, status := c.run("port", "block", "p"); status != want.status || errs != want.text {
			t.Errorf("%v: status %d, %q", want.err, status, errs)
		}
	}
	s.err = nil
	if _, errs, status := c.run("port", "show", "nobody"); status != cli.ExitFailure ||
		!strings.Contains(errs, "there is no port nobody; there are ") {
		t.Errorf("unknown port: %d %s", status, errs)
	}
}

func TestWhoMistypesAFlagIsToldWhereToLook(t *testing.T) {
	c := newConsole(t, furnished())
	if _, errs, status := c.run("port", "list", "--swich", "lab"); status != cli.ExitUsage ||
		!strings.Contains(errs, `unknown flag: --swich (see "heddle port list --help")`) {
		t.Errorf("%d %s", status, errs)
	}
	if out := c.must("--version"); !strings.Contains(out, version.Of("").Version) {
		t.Errorf("--version: %s", out)
	}
	c.release = "0.2.0"
	for _, args := range [][]string{{"--version"}, {"version"}, {"version", "-o", "json"}} {
		if out := c.must(args...); !strings.Contains(out, "0.2.0") {
			t.Errorf("%q in a program of the package 0.2.0: %s", args, out)
		}
	}
	if out := c.must("--help"); !strings.Contains(out, "heddle agent --config heddle.yaml") {
		t.Errorf("the program's help has no example:\n%s", out)
	}
}

func TestEveryCommandExplainsItselfWithAnExample(t *testing.T) {
	root := NewRoot(cli.Deps{Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
		Getenv: func(string) string { return "" }})
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden && sub.Short == "" { // only the program itself uses it
				continue
			}
			if sub.Short == "" || sub.Example == "" && sub.Name() != "completion" &&
				sub.Parent().Name() != "completion" && sub.Name() != "help" {
				t.Errorf("%s: short %q, example %q", sub.CommandPath(), sub.Short, sub.Example)
			}
			walk(sub)
		}
	}
	walk(root)
}

func TestNamesInSeveralSwitchesHaveToBeToldApart(t *testing.T) {
	s := furnished()
	s.state.Switches = append(s.state.Switches, api.Switch{Name: "second"})
	s.state.Uplinks = append(s.state.Uplinks, api.Uplink{Switch: "second", Name: "uplink1", State: api.Down})
	c := newConsole(t, s)
	if _, errs, status := c.run("uplink", "show", "uplink1"); status != cli.ExitUsage ||
		!strings.Contains(errs, "--switch") {
		t.Errorf("%d %s", status, errs)
	}
	if out := c.must("uplink", "show", "uplink1", "--switch", "second"); !strings.Contains(out, "second") {
		t.Error(out)
	}
}

func (s *standIn) Capture(ctx context.Context, q api.Capture, emit func(api.CaptureEvent) error) error {
	if s.capturing != nil {
		return s.capturing(ctx, emit)
	}
	if err := s.note(q); err != nil {
		return err
	}
	for _, e := range s.captured {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *standIn) EndCapture(_ context.Context, q api.EndCapture) error { return s.note(q) }

// manyVLANs returns a trunk with a long list of ranges.
func manyVLANs() plan.VLAN {
	v := plan.VLAN{Mode: plan.VLANTrunk}
	for id := uint16(1); id < 2000; id += 2 {
		v.Set.AddRange(id, id)
	}
	return v
}
