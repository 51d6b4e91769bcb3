package dataplane
import ("testing";"heddle/internal/plan";"heddle/internal/spec";"fmt";"time")
func TestTmpBench(t *testing.T) {
	b, err := NewFrameBench(200000)
	if err != nil { t.Fatal(err) }
	defer b.Close()
	mk := func(n int, learn bool) Desired {
		sw := &plan.Switch{Name: "lab", MTU: 1500, ReversePath: true, ReversePathPromiscuous: true, BlockGuestBPDU: true}
		up := &plan.Uplink{ID: plan.PortID{"lab","up"}, VLANs: plan.AllVLANs()}
		sw.Uplinks = append(sw.Uplinks, up)
		d := Desired{Plan: &plan.Plan{Switches: []*plan.Switch{sw}}, Facts: plan.Facts{up.ID:{Up:true,MTU:1500}}, Attachments: map[plan.PortID]Attachment{up.ID:{Ifindex:1}}}
		for i := 0; i < n; i++ {
			id := plan.PortID{"lab", fmt.Sprint("vm", i)}
			p := &plan.Port{ID: id, Number: uint32(i+1), InitialMAC: plan.MAC{2,0,0,0,byte(i>>8),byte(i)}}
			p.Policy.VLAN.V = plan.VLAN{Mode: plan.VLANAccess, ID: 100}
			p.Policy.Teaming.Policy.V = spec.OriginatingPort
			p.Policy.Teaming.Active.V = []string{"up"}
			p.Policy.Learning.LimitPolicy.V = spec.LimitDrop
			p.Policy.Learning.Enabled.V = learn
			p.Policy.Learning.Limit.V = 4096
			p.Policy.Learning.Ageing.V = 10*time.Minute
			sw.Ports = append(sw.Ports, p)
			d.Facts[id] = plan.Fact{Up: true, MTU: 1500}
			d.Attachments[id] = Attachment{Ifindex: uint32(1000+i)}
		}
		return d
	}
	frame := make([]byte, 60)
	copy(frame, []byte{2,0,0,0,0,1, 2,0,0,0,0,0, 8,0})
	if err := b.Apply(mk(2,false)); err != nil { t.Fatal(err) }
	medianPair(t, b, frame)
	if testing.Short() { return }
	c, _ := b.Counters(); t.Logf("%+v", c[plan.PortID{"lab","vm1"}].PacketsOut)
	t0 := time.Now(); if err := b.Apply(mk(1000,true)); err != nil { t.Fatal(err) }; t.Log("apply 1000", time.Since(t0))
	t0 = time.Now(); if err := b.Apply(mk(1000,true)); err != nil { t.Fatal(err) }; t.Log("apply 1000 again", time.Since(t0))
	var es []MACEntry
	for i := 0; i < 100000; i++ { es = append(es, MACEntry{Switch:"lab", VLAN:100, MAC: plan.MAC{6,0,byte(i>>16),byte(i>>8),byte(i),1}, Port: plan.PortID{"lab", fmt.Sprint("vm", i%1000)}}) }
	if err := b.Learn(es); err != nil { t.Fatal(err) }
	cyc := func(n, stride int) {
		var fs []BenchFrame
		for i := 0; i < n; i++ { j := (i*stride)%100000; p := j%1000; src := (p+1)%1000; fs = append(fs, BenchFrame{From: plan.PortID{"lab", fmt.Sprint("vm", src)}, Dst: es[j].MAC, Src: plan.MAC{2,0,0,0,byte(src>>8),byte(src)}}) }
		if err := b.SetCycle(fs); err != nil { t.Fatal(err) }
		for i := 0; i < 4; i++ {
			e, _ := b.Cycle(frame, 1000000, true); d, _ := b.Cycle(frame, 1000000, false)
			t.Log(n, "empty", e, "full", d)
		}
	}
	cyc(2,1); cyc(1000,1); cyc(1000,101); cyc(100000,1)
	// own mac dst cyc
}
