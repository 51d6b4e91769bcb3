package lab

import (
	"context"
	"testing"

	"heddle/internal/diagnose/stats"
	"heddle/internal/test/testkit"
)

// A fresh and healthy lab, in which everybody reaches everybody, shows no drop and no loss, so that counts of these
// mean something. With two uplinks to one network every broadcast comes back; refusing it is normal, and these refusals
// are counted separately.
func TestAFreshHealthyLabShowsNoDropsAndNoLosses(t *testing.T) {
	testkit.Root(t)
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	for _, name := range []string{"placement-paths", "nested-mac-learning"} {
		s := builtIn(t, name)
		l, err := Build(ctx, s, Options{Name: labName(t), RunDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Down(); err != nil {
				t.Error(err)
			}
		})
		if name == "placement-paths" {
			a1, err := l.NS("a1")
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range []string{"10.0.10.11", "10.0.20.2", "10.0.10.3"} {
				if out, err := a1.Output("ping", "-c", "3", "-i", "0.2", "-W", "3", target); err != nil {
					t.Errorf("a1 does not reach %s: %v\n%s", target, err, out)
				}
			}
		}
		for _, h := range s.Hosts {
			all, err := l.Agent(h.Name).Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for i := range all {
				if c := stats.Of(&all[i]); c.InDropped+c.OutDropped+c.DeviceLost > 0 {
					t.Errorf("%s, host %s: %s %s: %d frames in dropped, %d copies out, %d lost: %+v refused %+v "+
						"device %+v peer %+v", name, h.Name,
						all[i].Switch, all[i].Name, c.InDropped, c.OutDropped, c.DeviceLost, all[i].Drops,
						all[i].Refused, all[i].Device, all[i].Peer)
				}
			}
		}
	}
}
