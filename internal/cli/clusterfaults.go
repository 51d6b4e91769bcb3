package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"heddle/internal/api"
	"heddle/internal/platform/health"
)

// ClusterStatus is how a controller is. Its clock is held against this machine's.
func ClusterStatus(ctx context.Context, f *api.Fleet) (*api.ControllerStatus, error) {
	began := time.Now()
	s, err := f.Status(ctx)
	if err != nil {
		return nil, err
	}
	if f, off := health.Skew("the controller", "this machine", s.Now, time.Now(), time.Since(began)); off {
		s.Findings = append(s.Findings, f)
		s.Healthy = false
	}
	return s, nil
}

// ClusterFaults are what a controller finds wrong with its cluster, for commands that show something else of it: they
// would say that all is well. Who may see a part of the cluster is told nothing. Where hosts are shown anyway, those
// that are wrong are left out.
func ClusterFaults(ctx context.Context, f *api.Fleet, hostsToo bool) (wrong []api.HealthFinding) {
	s, err := ClusterStatus(ctx, f)
	var refused *api.Error
	switch {
	case errors.As(err, &refused) && refused.Kind == api.Invalid: // a part
		return nil
	case err != nil:
		return []api.HealthFinding{{Check: "controllers", Level: api.HealthWrong,
			Text: "how the controllers are is not known: " + err.Error(), Remedy: "heddle doctor --controller"}}
	}
	for _, f := range s.Findings {
		if f.Level == api.HealthWrong && (hostsToo || f.Check != health.CheckHosts) {
			wrong = append(wrong, f)
		}
	}
	return wrong
}

// AskFaults asks for ClusterFaults beside what else is asked: both are of all hosts, and take their time where there
// are many. What it returns waits for them.
func AskFaults(ctx context.Context, f *api.Fleet, hostsToo bool) (wrong func() []api.HealthFinding) {
	said := make(chan []api.HealthFinding, 1)
	go func() { said <- ClusterFaults(ctx, f, hostsToo) }()
	return func() []api.HealthFinding { return <-said }
}

// PrintFaults prints them below an answer.
func PrintFaults(w io.Writer, wrong []api.HealthFinding) error {
	for _, f := range wrong {
		if _, err := fmt.Fprintf(w, "wrong: %s: %s (heddle doctor --controller)\n", f.Check, f.Text); err != nil {
			return err
		}
	}
	return nil
}
