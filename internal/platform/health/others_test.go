package health

import (
	"strings"
	"testing"

	"heddle/internal/api"
)

// Whatever is wrong with another controller, this one does not say that all is well.
func TestS127_S128_AnotherControllerThatIsNotWellIsWrong(t *testing.T) {
	if list := Others(Other{Name: "c2"}); len(list) != 0 {
		t.Errorf("one that is well: %+v", list)
	}
	for name, o := range map[string]Other{
		"away":  {Name: "c2", Away: "no answer"},
		"apart": {Name: "c2", Apart: "a store of its own"},
		"full":  {Name: "c2", NoRoom: "3 MiB left"},
	} {
		t.Run(name, func(t *testing.T) {
			list := Others(o)
			if len(list) != 1 || list[0].Level != api.HealthWrong || !strings.Contains(list[0].Text, "c2") ||
				!strings.Contains(list[0].Text, o.Away+o.Apart+o.NoRoom) || list[0].Remedy == "" || Healthy(list) {
				t.Errorf("%+v", list)
			}
		})
	}
}
