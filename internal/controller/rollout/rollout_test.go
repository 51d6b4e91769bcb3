package rollout_test

import (
	"fmt"
	"testing"

	"heddle/internal/controller/rollout"
)

func stages(t *testing.T, text string) []rollout.Stage {
	t.Helper()
	list, err := rollout.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func members(n int) (list []rollout.Member) {
	for i := range n {
		list = append(list, rollout.Member{ID: fmt.Sprint("id", i), Labels: map[string]string{
			"rack": fmt.Sprint("r", i%10), "env": []string{"prod", "test"}[i%7/6]}})
	}
	return list
}

func TestParse_WrongStagesAreRefused(t *testing.T) {
	for _, text := range []string{"", "1", "1,10%", "10%,1%,100%", "5,5,100%", "0,100%", "-1,100%", "101%", "x,100%",
		"=a,100%", "env=,100%", "1,,100%", "NaN%,100%", "100%,env=test"} {
		if got, err := rollout.Parse(text); err == nil {
			t.Errorf("%q is taken as %+v", text, got)
		}
	}
}

// Each stage has the hosts that it should, a host stays in its stage whatever other hosts come and go, and the last one
// has all.
func TestOrder_EachHostHasOneStageForGood(t *testing.T) {
	all := members(1000)
	for seed := range 50 {
		o := rollout.NewOrder(fmt.Sprint(seed), "", stages(t, "1,10%,100%"), all)
		for begun, want := range []int{0, 1, 100, 1000} {
			if changed, others := o.Part(all, begun); len(changed) != want || len(others) != 1000-want {
				t.Fatalf("seed %d: %d of %d hosts have the change after stage %d", seed, len(changed), len(all), begun)
			}
		}
		if o.StageOf(rollout.Member{ID: "joins later"}) > 2 {
			t.Error("a host that joins has no stage")
		}
	}
	first := map[string]bool{}
	for seed := range 50 {
		o := rollout.NewOrder(fmt.Sprint(seed), "", stages(t, "1,100%"), all)
		changed, _ := o.Part(all, 1)
		first[changed[0].ID] = true
	}
	if len(first) < 30 {
		t.Errorf("%d different hosts come first in 50 rollouts", len(first))
	}
}

func TestOrder_ByLabel(t *testing.T) {
	all := members(1000)
	o := rollout.NewOrder("s", "rack", stages(t, "1,30%,100%"), all)
	for begun, want := range map[int]int{1: 1, 2: 3, 3: 10} {
		racks := map[string]int{}
		changed, _ := o.Part(all, begun)
		for _, m := range changed {
			racks[m.Labels["rack"]]++
		}
		if len(racks) != want || len(changed) != want*100 {
			t.Errorf("after stage %d %d hosts of %d racks have the change", begun, len(changed), len(racks))
		}
	}
	o = rollout.NewOrder("s", "", stages(t, "env=test,50%,100%"), all)
	changed, _ := o.Part(all, 1)
	for _, m := range changed {
		if m.Labels["env"] != "test" {
			t.Fatalf("%+v is not in the first stage", m)
		}
	}
	if len(changed) == 0 {
		t.Error("no host has the label")
	}
}
