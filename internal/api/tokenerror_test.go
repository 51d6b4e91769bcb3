package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// Where there is no token to show, its reason is told as it is, whatever kept it away: the controller was not asked.
func TestAnErrorOfTheTokenIsNotTheControllers(t *testing.T) {
	for name, why := range map[string]error{
		"nobody listens at the provider": fmt.Errorf("the provider can't be asked: %w", syscall.ECONNREFUSED),
		"the provider hangs":             fmt.Errorf("the provider can't be asked: %w", context.DeadlineExceeded),
	} {
		t.Run(name, func(t *testing.T) {
			f := NewRemoteFleet(Remote{URL: "https://192.0.2.1:7443", TLS: &tls.Config{MinVersion: tls.VersionTLS13},
				TokenNow: func(context.Context) (string, error) { return "", why }})
			_, err := f.WhoAmI(t.Context())
			if !errors.Is(err, why) || strings.Contains(err.Error(), "controller") {
				t.Errorf("the fleet's error: %v", err)
			}
			_, err = f.Host("esx1").State(t.Context())
			if !errors.Is(err, why) || strings.Contains(err.Error(), "controller") {
				t.Errorf("a host's error: %v", err)
			}
		})
	}
}
