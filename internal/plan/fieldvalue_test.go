package plan

import (
	"encoding/json"
	"testing"
	"time"
)

// TestAFieldsValueHasItsOwnTypeInJSON also reads the value back in that type.
func TestAFieldsValueHasItsOwnTypeInJSON(t *testing.T) {
	group := Source{FromPortGroup, "web"}
	var trunk VLANSet
	trunk.AddRange(0, 0)
	trunk.AddRange(10, 20)
	for _, c := range []struct {
		row        Row
		json, text string
	}{
		{Row{"blocked", FieldValueOf(false), "", group}, `false`, "false"},
		{Row{"security.promiscuous", FieldValueOf("reject"), "", group}, `"reject"`, "reject"},
		{Row{"security.macLearning.limit", FieldValueOf(4096), "MACs", group}, `4096`, "4096"},
		{Row{"security.macLearning.ageing", FieldValueOf(10 * time.Minute), UnitSeconds, group}, `600`, "10m"},
		{Row{"stormControl.burst", FieldValueOf(1500 * time.Millisecond), UnitSeconds, group}, `1.5`, "1.5s"},
		{Row{"teaming.active", FieldValueOf([]string{"u1", "u2"}), "", group}, `["u1","u2"]`, "u1, u2"},
		{Row{"teaming.standby", FieldValueOf([]string{}), "", group}, `[]`, "none"},
		{Row{"vlan", FieldValueOf(VLAN{}), "", group}, `{"mode":"none"}`, "none"},
		{Row{"vlan", FieldValueOf(VLAN{Mode: VLANAccess, ID: 10}), "", group}, `{"mode":"access","access":10}`,
			"access 10"},
		{Row{"vlan", FieldValueOf(VLAN{Mode: VLANTrunk, Set: trunk}), "", group},
			`{"mode":"trunk","trunk":[{"first":0,"last":0},{"first":10,"last":20}],"outer":"802.1q"}`, "trunk 0,10-20"},
		{Row{"lags", FieldValueOf([]Members{{{"name", FieldValueOf("lag1")},
			{"uplinks", FieldValueOf([]string{"u1", "u2"})},
			{"tls", FieldValueOf(Members{{"ca", FieldValueOf("x")}})}}}),
			"", group}, `[{"name":"lag1","uplinks":["u1","u2"],"tls":{"ca":"x"}}]`,
			"[{name: lag1, uplinks: [u1, u2], tls: {ca: x}}]"},
		{Row{"new.field", FieldValue{}, "", group}, `null`, "?"},
	} {
		b, err := json.Marshal(c.row)
		if err != nil {
			t.Fatal(err)
		}
		unit := ""
		if c.row.Unit != "" {
			unit = `,"unit":"` + c.row.Unit + `"`
		}
		want := `{"policy":"` + c.row.Policy + `","value":` + c.json + unit +
			`,"from":{"level":"port group","name":"web"}}`
		var back Row
		if err := json.Unmarshal(b, &back); err != nil || string(b) != want || !back.Value.Equal(c.row.Value) ||
			back.From != group || c.row.Value.String() != c.text {
			t.Errorf("%s, want %s; reads back as %+v, in words %s: %v", b, want, back, c.row.Value, err)
		}
	}
}

// TestEachFieldsValueHasTheTypeOfItsKind: a new field needs no work where its value is shown.
func TestEachFieldsValueHasTheTypeOfItsKind(t *testing.T) {
	for _, r := range port(t, "", "", "").Rows() {
		f, _ := FieldOf(r.Policy)
		var right bool
		switch f.Kind {
		case KindTruth:
			_, right = r.Value.Any().(bool)
		case KindAnswer, KindChoice:
			_, right = r.Value.Any().(string)
		case KindNumber:
			_, right = r.Value.Any().(int)
			right = right && r.Unit != ""
		case KindDuration:
			_, right = r.Value.Any().(time.Duration)
			right = right && r.Unit == UnitSeconds
		case KindList:
			_, right = r.Value.Any().([]string)
		case KindVLAN:
			_, right = r.Value.Any().(VLAN)
		}
		if !right {
			t.Errorf("%s: %T, unit %q", r.Policy, r.Value.Any(), r.Unit)
		}
	}
}
