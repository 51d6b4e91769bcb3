package experiment

import (
	"errors"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec"
)

func TestEveryExperimentIsWhole(t *testing.T) {
	for _, name := range Names() {
		e, err := Find(name)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen := map[string]bool{}
		for _, r := range e.Rows {
			if seen[r.Name] {
				t.Errorf("%s: two rows %q", name, r.Name)
			}
			seen[r.Name] = true
			if !r.From.Address.IsValid() || !r.To.Address.IsValid() || r.From == r.To {
				t.Errorf("%s/%s: traffic from %v to %v", name, r.Name, r.From, r.To)
			}
			if len(r.Counted) == 0 {
				t.Errorf("%s/%s counts no uplink", name, r.Name)
			}
		}
	}
}

func TestNestedRowsAreThoseOfTheArticles(t *testing.T) {
	e, err := NestedMACLearning()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"promiscuous-dual", "promiscuous-single", "promiscuous-dual-checked", "standard-promiscuous",
		"mac-learning-dual", "mac-learning-single", "two-hosts-promiscuous", "two-hosts-mac-learning",
	}
	var got []string
	for _, r := range e.Rows {
		got = append(got, r.Name)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("rows %v, want %v", got, want)
	}
}

func TestNestedRowsDifferInWhatTheirNamesSay(t *testing.T) {
	e, err := NestedMACLearning()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row                            string
		kind                           spec.Kind
		promiscuous, learning, checked bool
		uplinks, hosts                 int
	}{
		{"promiscuous-dual", spec.Distributed, true, false, false, 2, 3},
		{"promiscuous-single", spec.Distributed, true, false, false, 1, 3},
		{"promiscuous-dual-checked", spec.Distributed, true, false, true, 2, 3},
		{"standard-promiscuous", spec.Standard, true, false, false, 2, 3},
		{"mac-learning-dual", spec.Distributed, false, true, true, 2, 3},
		{"mac-learning-single", spec.Distributed, false, true, true, 1, 3},
		{"two-hosts-promiscuous", spec.Distributed, true, false, false, 2, 4},
		{"two-hosts-mac-learning", spec.Distributed, false, true, true, 2, 4},
	} {
		t.Run(c.row, func(t *testing.T) {
			s := e.Row(c.row).Scenario
			sw := s.Host("esx1").Config.Switches[0]
			sec := sw.PortGroups[0].Security
			check := sw.Checks.ReversePathPromiscuous
			got := []any{
				sw.Kind, sec.Promiscuous == spec.Accept, sec.MACLearning.Enabled != nil && *sec.MACLearning.Enabled,
				check == nil || *check, len(sw.Uplinks), len(s.Hosts), sec.ForgedTransmits,
			}
			want := []any{c.kind, c.promiscuous, c.learning, c.checked, c.uplinks, c.hosts, spec.Accept}
			if !slices.Equal(got, want) {
				t.Errorf("%s: kind, promiscuous, learning, check, uplinks, hosts, forged = %v, want %v", c.row, got,
					want)
			}
		})
	}
}

// What the lab writes for an agent must be a configuration again.
func TestConfigurationsSurviveBeingWritten(t *testing.T) {
	e, err := NestedMACLearning()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range e.Rows {
		for _, h := range r.Scenario.Hosts {
			data, err := yaml.Marshal(h.Config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := spec.Parse(r.Name+"/"+h.Name, data); err != nil {
				t.Errorf("%v\n%s", err, data)
			}
		}
	}
}

func TestSelectedRows(t *testing.T) {
	e, err := Find(Nested)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := e.Select([]string{"mac-learning-dual", "promiscuous-dual"})
	if err != nil || len(rows) != 2 || rows[0].Name != "mac-learning-dual" {
		t.Errorf("Select = %v, %v", rows, err)
	}
	if _, err := e.Select([]string{"nonsense"}); !errors.Is(err, ErrUnknown) {
		t.Errorf("Select of an unknown row = %v, want ErrUnknown", err)
	}
	if rows, _ := e.Select(nil); len(rows) != len(e.Rows) {
		t.Errorf("%d rows without a choice, want all", len(rows))
	}
}
