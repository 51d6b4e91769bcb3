package health

import (
	"strings"
	"testing"

	"heddle/internal/api"
)

func TestPlaces_NamesTheHostThatTheMajorityDependsOn(t *testing.T) {
	for hosts, want := range map[string]string{
		"- - -":                  "",
		"esx1":                   "",
		"esx1 esx2":              "ok",
		"esx1 esx2 esx3":         "ok",
		"esx1 - -":               "ok",
		"esx1 esx1 -":            "2 of 3 controllers are VMs on host esx1 (c0, c1)",
		"esx1 esx2 esx1":         "2 of 3 controllers are VMs on host esx1 (c0, c2)",
		"esx2 esx2 esx2":         "3 of 3",
		"esx1 esx1 a b c":        "ok",
		"esx1 esx1 esx1 b c":     "3 of 5",
		"esx1 esx1 esx2 esx2":    "2 of 4 controllers are VMs on host esx1",
		"esx1 esx1 b c d e esx1": "ok",
	} {
		t.Run(hosts, func(t *testing.T) {
			var all []api.ControllerPlace
			for i, h := range strings.Fields(hosts) {
				all = append(all, api.ControllerPlace{Name: "c" + string(rune('0'+i)), Host: strings.Trim(h, "-")})
			}
			found := places(all)
			switch {
			case want == "":
				if len(found) > 0 {
					t.Errorf("found %+v", found)
				}
			case want == "ok":
				if len(found) != 1 || found[0].Level != api.HealthOK {
					t.Errorf("found %+v", found)
				}
			case len(found) == 0 || found[0].Level != api.HealthNote || !strings.HasPrefix(found[0].Text, want):
				t.Errorf("found %+v, want %q", found, want)
			}
		})
	}
}
