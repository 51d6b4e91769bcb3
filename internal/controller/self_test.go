package controller

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/identity"
)

// A controller whose clock was set makes itself another certificate at once: the one that it has would be refused.
func TestS121_AControllersCertificateFollowsItsClock(t *testing.T) {
	made := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	cert := &x509.Certificate{NotBefore: made.Add(-identity.Backdate)}
	for name, row := range map[string]struct {
		after time.Duration
		want  bool
	}{"new": {0, false}, "a moment before": {-time.Second, false}, "six days old": {6 * 24 * time.Hour, false},
		"a week old": {renewEvery, true}, "the clock was put back": {-time.Hour, true},
		"the clock was put ahead": {70 * 24 * time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			if got := dated(cert, made.Add(row.after)); got != row.want {
				t.Error(got)
			}
		})
	}
}

// A controller whose id was cut by a loss of power does not start as another one.
func TestS126_AControllerWithADamagedIDDoesNotStart(t *testing.T) {
	o := optionsIn(t, t.TempDir())
	first, err := selfOf(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.Dir, idFile)
	for _, text := range []string{"", first.ID[:7], first.ID[:25] + "!", first.ID + "a", first.ID + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := selfOf(o); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
	if err := os.WriteFile(path, []byte(first.ID), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := selfOf(o); err != nil || s.ID != first.ID {
		t.Errorf("%+v, %v", s, err)
	}
}
