package changes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/spec"
)

const base = `
switches:
  - name: lab
    uplinks: [{name: u1, device: eno1}]
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: other, vlan: {access: 200}, overrides: {blocked: false}}
ports:
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: lab, portGroup: web, device: pb}
`

func parse(t *testing.T, content string) *spec.Config {
	t.Helper()
	cfg, err := spec.Parse("heddle.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDiffReadsLikeTheChange(t *testing.T) {
	from := parse(t, base)
	to := parse(t, `
switches:
  - name: lab
    mtu: 9000
    uplinks: [{name: u2}, {name: u3}]
    lags: [{name: lag1, uplinks: [u2, u3], mode: active}]
    portGroups:
      - {name: web, vlan: {trunk: ["0", "10-20"]}}
      - {name: new}
ports:
  - {name: b, switch: lab, portGroup: web, device: px}
`)
	got, err := Between(from, to)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Change{
		{Kind: "-", Object: "uplink lab/u1"},
		{Kind: "-", Object: "port group lab/other"},
		{Kind: "-", Object: "port a"},
		{Kind: "+", Object: "switch lab", Field: "mtu", New: "9000"},
		{Kind: "+", Object: "switch lab", Field: "lags", New: "[{name: lag1, uplinks: [u2, u3], mode: active}]"},
		{Kind: "+", Object: "uplink lab/u2"},
		{Kind: "+", Object: "uplink lab/u3"},
		{Kind: "+", Object: "port group lab/web", Field: "vlan.trunk", New: "[0, 10-20]"},
		{Kind: "-", Object: "port group lab/web", Field: "vlan.access", Old: "100"},
		{Kind: "+", Object: "port group lab/new"},
		{Kind: "~", Object: "port b", Field: "device", Old: "pb", New: "px"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if same, err := Between(from, parse(t, base)); err != nil || len(same) != 0 {
		t.Errorf("equal files differ: %v %v", same, err)
	}
}
