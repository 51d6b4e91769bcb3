package agent

import (
	"context"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/observe/event"
)

// chainRig has an uplink and a port on devices, and no program before the switch.
func chainRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dev: newFakeDevices(), kernel: &fakeKernel{chains: map[uint32]dataplane.Chain{}}, dir: t.TempDir()}
	r.dev.nic("eno1", 1500).AdminUp = true
	r.dev.veth("pa", "02:00:00:00:00:0a")
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	r.settler.settle()
	return r
}

func (r *rig) shown(name string) (before []api.ProgramBefore, reason string) {
	r.t.Helper()
	s := r.answers.view()
	for _, p := range s.Ports {
		if p.Name == name {
			return p.RunsBefore, p.Reason
		}
	}
	for _, u := range s.Uplinks {
		if u.Name == name {
			return u.RunsBefore, u.Reason
		}
	}
	r.t.Fatalf("no port or uplink %s", name)
	return nil, ""
}

// A program before the switch is found each minute and at each command that promises something, is reported once, and
// is cleared when it is gone. A program behind the switch is no problem.
func TestProgramsBeforeTheSwitch(t *testing.T) {
	r := chainRig(t)
	pa := r.dev.byName["pa"].Index
	spy := dataplane.Stranger{Hook: dataplane.Ingress, Program: 12, Link: 34, Name: "heddle_ingress", Before: true}
	r.kernel.chains[pa] = dataplane.Chain{Ours: true, Strangers: []dataplane.Stranger{spy,
		{Hook: dataplane.Ingress, Program: 13}}}
	for range 3 {
		r.chains.lookAtChains()
	}
	want := api.ProgramBefore{Switch: "lab", Port: "a", Device: "pa", Hook: "ingress", Name: "heddle_ingress",
		Program: 12, Link: 34}
	if got, reason := r.shown("a"); len(got) != 1 || got[0] != want ||
		!strings.Contains(reason, "program heddle_ingress (id 12, link 34) runs before the switch on device pa") {
		t.Errorf("port a: %+v, %q", got, reason)
	}
	if got := r.told(event.Program); len(got) != 1 ||
		!strings.HasPrefix(got[0].Text, "port a: program heddle_ingress (id 12, link 34)") {
		t.Errorf("events: %+v", got)
	}
	delete(r.kernel.chains, pa)
	r.chains.lookAtChains()
	if got, reason := r.shown("a"); got != nil || reason != "" {
		t.Errorf("when it is gone: %+v, %q", got, reason)
	}
	if got := r.told(event.Program); len(got) != 2 {
		t.Errorf("events: %+v", got)
	}
}

func TestAnswersWarnOfProgramsBeforeTheSwitch(t *testing.T) {
	spy := dataplane.Stranger{Hook: dataplane.Ingress, Program: 12, Link: 34, Before: true}
	for name, ask := range map[string]func(*rig) (*api.Applied, error){
		"block": func(r *rig) (*api.Applied, error) {
			return r.answer(func(ctx context.Context) (*api.Applied, error) {
				return r.commands.Block(ctx, api.Block{Port: "a", Blocked: true})
			})
		},
		"block once more": func(r *rig) (*api.Applied, error) {
			for range 2 {
				if _, err := r.answer(func(ctx context.Context) (*api.Applied, error) {
					return r.commands.Block(ctx, api.Block{Port: "a", Blocked: true})
				}); err != nil {
					return nil, err
				}
			}
			return r.answer(func(ctx context.Context) (*api.Applied, error) {
				return r.commands.Block(ctx, api.Block{Port: "a", Blocked: true})
			})
		},
		"apply": func(r *rig) (*api.Applied, error) {
			return r.answer(func(ctx context.Context) (*api.Applied, error) {
				return r.files.Apply(ctx, api.Apply{File: "heddle.yaml", Content: base})
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := chainRig(t)
			r.kernel.chains[r.dev.byName["pa"].Index] = dataplane.Chain{Ours: true,
				Strangers: []dataplane.Stranger{spy}}
			out, err := ask(r)
			if err != nil {
				t.Fatal(err)
			}
			if len(out.RunsBefore) != 1 || out.RunsBefore[0].Program != 12 || out.RunsBefore[0].Port != "a" ||
				!strings.Contains(strings.Join(out.Warnings, "\n"), "program (id 12, link 34) runs before the switch") {
				t.Errorf("%+v", out)
			}
		})
	}
	r := chainRig(t)
	out, err := r.answer(func(ctx context.Context) (*api.Applied, error) {
		return r.commands.Block(ctx, api.Block{Port: "a", Blocked: true})
	})
	if err != nil || out.RunsBefore != nil || out.Warnings != nil {
		t.Errorf("with nothing there: %+v, %v", out, err)
	}
}

func (r *rig) answer(f func(context.Context) (*api.Applied, error)) (out *api.Applied, err error) {
	err = r.command(func(ctx context.Context) error { out, err = f(ctx); return err })
	return out, err
}

// An XDP program runs before everything else.
func TestAnXDPProgramRunsBeforeTheSwitch(t *testing.T) {
	r := chainRig(t)
	r.dev.byName["eno1"].XDP = 77
	r.settler.settle()
	if got, _ := r.shown("u1"); len(got) != 1 || got[0].Hook != api.HookXDP || got[0].Program != 77 ||
		got[0].Uplink != "u1" {
		t.Errorf("uplink u1: %+v", got)
	}
}

// A program that somebody had put behind the switch's own attachment is told.
func TestS116_AnExchangedProgramIsTold(t *testing.T) {
	r := chainRig(t)
	r.kernel.chains[r.dev.byName["pa"].Index] = dataplane.Chain{Ours: true, Exchanged: []uint32{77}}
	r.chains.lookAtChains()
	if got := r.told(event.Program); len(got) != 1 ||
		!strings.Contains(got[0].Text, "exchanged the switch's program on device pa for program 77") {
		t.Errorf("%+v", got)
	}
}

// If somebody removes the switch's program from a device, it is attached again.
func TestAProgramThatWasTakenOffIsAttachedAgain(t *testing.T) {
	r := chainRig(t)
	n := r.kernel.attached
	r.chains.lookAtChains()
	if r.kernel.attached != n {
		t.Error("attached again though it was there")
	}
	r.kernel.chains[r.dev.byName["pa"].Index] = dataplane.Chain{}
	r.chains.lookAtChains()
	if r.kernel.attached != n+1 {
		t.Error("not attached again")
	}
}
