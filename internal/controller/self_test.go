package controller

import (
	"crypto/x509"
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
