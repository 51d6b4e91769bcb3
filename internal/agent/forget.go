package agent

import (
	"context"
	"slices"

	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// forgottenAtOnce is how many learned MACs are removed in one turn of the loop: a failed link must not wait for more.
const forgottenAtOnce = 4096

// ForgetMACs removes learned addresses from the table until they are learned again, and returns them.
func (c *commands) ForgetMACs(ctx context.Context, q api.ForgetMACs) ([]api.MAC, error) {
	chosen, err := chosenMACs(q)
	if err != nil {
		return nil, err
	}
	var list []observe.MACEntry
	err = c.Do(ctx, func() (err error) {
		list, err = c.kernel.MACs()
		return err
	})
	list = slices.DeleteFunc(list, func(e observe.MACEntry) bool { return !chosen(e) })
	if err != nil || q.DryRun {
		return append([]api.MAC{}, view.Learned(list)...), err
	}
	out := []api.MAC{}
	for some := range slices.Chunk(list, forgottenAtOnce) {
		var removed []observe.MACEntry
		err := c.Do(ctx, func() (err error) {
			removed, err = c.kernel.ForgetMACs(some)
			return err
		})
		out = append(out, view.Learned(removed)...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// chosenMACs returns a function that selects the learned addresses that a command means.
func chosenMACs(q api.ForgetMACs) (func(observe.MACEntry) bool, error) {
	var mac plan.MAC
	if q.MAC != "" {
		var err error
		if mac, err = plan.ParseMAC(q.MAC); err != nil {
			return nil, api.NewError(api.Invalid, err.Error())
		}
	}
	return func(e observe.MACEntry) bool {
		return (q.Switch == "" || e.Switch == q.Switch) && (q.Port == "" || e.Port.Name == q.Port) &&
			(q.MAC == "" || e.MAC == mac) && (q.VLAN == nil || e.VLAN == *q.VLAN)
	}, nil
}
