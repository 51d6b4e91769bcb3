package model_test

import (
	"fmt"
	"heddle/internal/diagnose"
	"strings"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/difftest"
	"heddle/internal/test/testkit"
)

const disagreement = `
switches:
- name: lab
  portGroups: [{name: web}]
ports:
- {name: vm1, switch: lab, portGroup: web, device: d1, mac: "02:00:00:00:00:01"}
- {name: vm2, switch: lab, portGroup: web, device: d2, mac: "02:00:00:00:00:02"}
`

// asKernel is a subject as a trace asks for it.
type asKernel struct{ difftest.Subject }

func (k asKernel) Frame(at plan.PortID, f []byte) (trace.Outcome, error) {
	o, err := k.Subject.Frame(at, f, time.Hour)
	return trace.Outcome{Delivered: o.Delivered, Reason: o.Reason, Copies: o.Copies, Refused: o.Refused}, err
}

func (k asKernel) FrameFrom(sw string, vni uint32, _ []byte) (trace.Outcome, error) {
	return trace.Outcome{}, fmt.Errorf("switch %s has no tunnel, for VNI %d", sw, vni)
}

// traced traces a forged frame with a model that has a mistake, or none, beside the right one.
func traced(t *testing.T, right difftest.Subject, fault string) *diagnose.Report {
	t.Helper()
	cfg, err := spec.Parse("lab.yaml", []byte(disagreement))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	facts := plan.Facts{{Switch: "lab", Name: "vm1"}: {Up: true, MTU: 1500}, {Switch: "lab", Name: "vm2"}: {Up: true,
		MTU: 1500}}
	if err := right.SetPlan(p, facts, time.Hour); err != nil {
		t.Fatal(err)
	}
	h := &trace.Host{Plan: p, Facts: facts, Now: time.Hour, Kernel: asKernel{right}, NewModel: model.New}
	if fault != "" {
		h.NewModel = model.NewFaulty(fault)
	}
	forged := plan.MAC{2, 0, 0, 0, 0, 9}
	r, err := trace.Run(h, diagnose.Request{From: "vm1", To: "vm2", Frame: &diagnose.Fields{SrcMAC: &forged}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A trace reports that a faulty model differs from the right one, in words, and reports nothing without a fault.
func TestATraceSaysThatModelAndKernelDisagree(t *testing.T) {
	disagrees(t, difftest.NewModel(model.New))
}

// The same with the kernel program as the right one.
func TestATraceSaysThatModelAndKernelProgramDisagree(t *testing.T) {
	testkit.Root(t)
	k, err := difftest.NewKernel()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	disagrees(t, k)
}

func disagrees(t *testing.T, right difftest.Subject) {
	t.Helper()
	if r := traced(t, right, ""); !r.Agree || r.Frames[0].Kernel != "agrees" ||
		r.Frames[0].Reason != abi.ReasonForgedTransmit.String() {
		t.Fatalf("the right model: %+v", r.Frames[0])
	}
	r := traced(t, right, "admit: forged transmits pass")
	got := strings.Join(r.Frames[0].Differences, "\n")
	want := "the model says delivered, the kernel program dropped (forged-transmit)\nthe model alone has a copy for " +
		"lab/vm2, untagged, 60 bytes"
	if r.Agree || r.Frames[0].Kernel != "disagrees" || got != want {
		t.Errorf("%v, %q: %s\nwant %s", r.Agree, r.Frames[0].Kernel, got, want)
	}
}
