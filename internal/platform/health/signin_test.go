package health

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

func TestTheIdentityProvider(t *testing.T) {
	if found := SignIn("", "", time.Time{}); len(found) != 0 {
		t.Errorf("without one: %+v", found)
	}
	if found := SignIn("https://id", "", time.Time{}); Healthy(found) != true || len(found) != 1 {
		t.Errorf("one that answers: %+v", found)
	}
	found := SignIn("https://id", "refused", time.Unix(0, 0))
	if Healthy(found) || len(found) != 1 || found[0].Level != api.HealthWrong ||
		!strings.Contains(found[0].Text, "has not answered as it should since 1970-01-01 00:00:00: refused") {
		t.Errorf("one that does not: %+v", found)
	}
}
