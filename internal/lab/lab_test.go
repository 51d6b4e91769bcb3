package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/lab/scenario"
	"heddle/internal/test/testkit"
)

// labName is a name that no other test running at the same time has.
func labName(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("t%d-%d", os.Getpid()%100000, time.Now().UnixNano()%100000)
}

// idleProgram is a program that runs until it is ended and never becomes a ready agent.
func idleProgram(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "idle")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// leftovers lists what a lab of that name has left on the machine.
func leftovers(t *testing.T, runDir, name string, namespaces map[inode]bool) []string {
	t.Helper()
	var found []string
	entries, err := os.ReadDir(netnsDir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), name+"-") {
			found = append(found, "namespace "+e.Name())
		}
	}
	for _, pid := range processesIn(namespaces) {
		found = append(found, fmt.Sprintf("process %d", pid))
	}
	mounts, err := mountsBelow(runDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		found = append(found, "mount "+m)
	}
	files, err := filepath.Glob(filepath.Join(runDir, "lab", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return append(found, files...)
}

// inodes are the namespaces of a lab as long as it is there.
func (l *Lab) inodes(t *testing.T) map[inode]bool {
	t.Helper()
	all := namespaceInodes(l.Record)
	if len(all) == 0 {
		t.Fatal("the lab has no namespace")
	}
	return all
}

func builtIn(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	s, err := experiment.Scenario(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuildInterruptedAnywhereLeavesNothing(t *testing.T) {
	testkit.Root(t)
	for step := range 7 {
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) {
			runDir, name := t.TempDir(), labName(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			seen, namespaces := 0, map[inode]bool{}
			_, err := Build(ctx, builtIn(t, "placement-paths"), Options{
				Name: name, RunDir: runDir, Program: idleProgram(t),
				Progress: func(string) {
					if r, err := Find(runDir, name); err == nil {
						namespaces = namespaceInodes(r)
					}
					if seen == step {
						cancel()
					}
					seen++
				},
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("Build = %v, want that it was interrupted", err)
			}
			if left := leftovers(t, runDir, name, namespaces); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestBuildReportsAnAgentThatEnds(t *testing.T) {
	testkit.Root(t)
	runDir, name := t.TempDir(), labName(t)
	program := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho no such luck\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Build(context.Background(), builtIn(t, "nested-mac-learning"),
		Options{Name: name, RunDir: runDir, Program: program})
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Build = %v, want the status and the last words of the agent", err)
	}
	if left := leftovers(t, runDir, name, nil); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBuildRefusesATakenName(t *testing.T) {
	testkit.Root(t)
	ns := testkit.NS(t, "taken-n1") // as the lab that is there has one
	runDir, name := t.TempDir(), strings.TrimSuffix(ns.Name, "-n1")
	r := &Record{Name: name, Dir: filepath.Join(runDir, "lab", name)}
	if err := r.create(runDir); err != nil {
		t.Fatal(err)
	}
	_, err := Build(context.Background(), builtIn(t, "nested-mac-learning"),
		Options{Name: name, RunDir: runDir, Program: "/bin/true"})
	if err == nil || !strings.Contains(err.Error(), "heddle lab down "+name) {
		t.Errorf("Build = %v, want how to remove the lab that is there", err)
	}
	if _, err := Find(runDir, name); err != nil {
		t.Errorf("the other lab's record: %v", err)
	}
}

func TestNamespaceOfAMachineSaysThatThereIsNone(t *testing.T) {
	runDir := t.TempDir()
	r := &Record{Name: "mixed", Dir: filepath.Join(runDir, "lab", "mixed"), Nodes: []Node{
		{Name: "esx1", Kind: NodeHost, Namespace: "mixed-esx1"}, {Name: "vm1", Kind: NodeVM}}}
	if err := r.create(runDir); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]string{"vm1": "QEMU", "vm2": "it has esx1"} {
		t.Run(node, func(t *testing.T) {
			if _, err := Namespace(runDir, "mixed", node); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Namespace of %s = %v, want %q in it", node, err, want)
			}
		})
	}
}

func TestBuildLeavesForeignNamespacesAlone(t *testing.T) {
	testkit.Root(t)
	foreign := testkit.NS(t, "foreign-n1")
	runDir, name := t.TempDir(), strings.TrimSuffix(foreign.Name, "-n1")
	_, err := Build(context.Background(), builtIn(t, "nested-mac-learning"),
		Options{Name: name, RunDir: runDir, Program: "/bin/true"})
	if err == nil || !strings.Contains(err.Error(), foreign.Name) {
		t.Fatalf("Build = %v, want that namespace %s is taken", err, foreign.Name)
	}
	if _, err := os.Stat(foreign.Path()); err != nil {
		t.Errorf("the foreign namespace is gone: %v", err)
	}
}

func TestDownRemovesWhatAKilledBuilderLeft(t *testing.T) {
	testkit.Root(t)
	runDir, name := t.TempDir(), labName(t)
	l, err := prepare(builtIn(t, "placement-paths"), Options{Name: name, RunDir: runDir, Program: idleProgram(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(context.Context) error{l.makeNamespaces, l.makeAdapters, l.startAgents} {
		if err := step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	namespaces := l.inodes(t)
	if n := len(processesIn(namespaces)); n != 2 {
		t.Fatalf("%d agents run, want 2", n)
	}
	all, err := List(runDir)
	if err != nil || len(all) != 1 || all[0].Name != name || all[0].State != Building {
		t.Fatalf("List = %v, %v, want the lab that is being built", all, err)
	}
	if err := Down(context.Background(), runDir, name); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, runDir, name, namespaces); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := os.Stat(runDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last lab's directory: %v, want it gone", err)
	}
	if err := Down(context.Background(), runDir, name); !errors.Is(err, ErrUnknown) {
		t.Errorf("second Down = %v, want that there is no such lab", err)
	}
}

func TestListIsSorted(t *testing.T) {
	runDir := t.TempDir()
	for _, n := range []string{"b", "c", "a"} {
		if err := (&Record{Name: n, Dir: filepath.Join(runDir, "lab", n)}).create(runDir); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List(runDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("List = %v", names)
	}
}

func TestLabIsReadyWhenBuiltAndLeavesNothing(t *testing.T) {
	testkit.Root(t)
	runDir, name := t.TempDir(), labName(t)
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	l, err := Build(ctx, builtIn(t, "placement-paths"), Options{Name: name, RunDir: runDir})
	if err != nil {
		t.Fatal(err)
	}
	namespaces := l.inodes(t)
	r, err := Find(runDir, name)
	if err != nil || r.State != Up {
		t.Errorf("record: %+v, %v, want that the lab is up", r, err)
	}
	ns, err := Namespace(runDir, name, "a1")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"10.0.10.11", "10.0.20.2", "10.0.10.3"} {
		if out, err := ns.Output("ping", "-c", "1", "-W", "3", target); err != nil {
			t.Errorf("a1 does not reach %s: %v\n%s", target, err, out)
		}
	}
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, runDir, name, namespaces); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLabOutlivesItsBuilder(t *testing.T) {
	testkit.Root(t)
	runDir, name := t.TempDir(), labName(t)
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	l, err := Build(ctx, builtIn(t, "nested-mac-learning"), Options{Name: name, RunDir: runDir})
	cancel() // the builder's context ends, the lab stays
	if err != nil {
		t.Fatal(err)
	}
	namespaces := l.inodes(t)
	state, err := l.Agent("esx1").State(context.Background())
	if err != nil || state.Agent.Name != "esx1" {
		t.Errorf("the agent of esx1 answers %+v, %v", state, err)
	}
	if err := Down(context.Background(), runDir, name); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, runDir, name, namespaces); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// qemuLab is a host with a namespace VM and a QEMU machine in one port group.
const qemuLab = `name: machines
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          kind: distributed
          portGroups: [{name: web, vlan: {access: 10}}]
      ports:
        - {name: vm1, switch: lab, portGroup: web, device: vm-vm1}
        - {name: vm2, switch: lab, portGroup: web, device: vm-vm2}
vms:
  - {name: vm1, host: esx1, addresses: [10.0.0.1/24]}
  - {name: vm2, host: esx1, kind: qemu, addresses: [10.0.0.2/24]}
`

func TestMachinesOfALabAnswerAndGoWithIt(t *testing.T) {
	testkit.Root(t)
	testkit.Tool(t, "qemu-system-x86_64", "ping")
	ctx, cancel := context.WithTimeout(context.Background(), 2*readyTime)
	defer cancel()
	if _, err := image.Build(ctx, image.Options{Flavour: image.Cloud, Log: t.Logf}); err != nil {
		testkit.Missing(t, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	s, err := scenario.Parse("machines.yaml", []byte(qemuLab), nil)
	if err != nil {
		t.Fatal(err)
	}
	runDir, name := t.TempDir(), labName(t)
	l, err := Build(ctx, s, Options{Name: name, RunDir: runDir})
	if err != nil {
		t.Fatal(err)
	}
	namespaces := l.inodes(t)
	ns, err := l.NS("vm1")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := ns.Output("ping", "-c", "1", "-W", "5", "10.0.0.2"); err != nil {
		t.Errorf("the machine does not answer: %v\n%s", err, out)
	}
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, runDir, name, namespaces); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
