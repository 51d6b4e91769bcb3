package siege

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/identity"
)

// attacksBy is the environment variable that makes the test program attack: what an attacker knows, in JSON.
const attacksBy = "HEDDLE_SIEGE"

// TestMain runs the tests, or attacks.
func TestMain(m *testing.M) {
	text := os.Getenv(attacksBy)
	if text == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a := &attacker{}
	if err := json.Unmarshal([]byte(text), a); err != nil {
		a.failed("%v", err)
		return
	}
	var g sync.WaitGroup
	for _, attack := range a.attacks() {
		g.Go(func() { attack(ctx) })
	}
	g.Wait()
}

// attacker is what attackers know.
type attacker struct {
	// Hosts and People are the controller's ports.
	Hosts, People string
	Trust         identity.Fingerprint
	// Viewer and Network are tokens for a port group, Shaper is one of a network admin of the whole cluster, Join one
	// for a host.
	Viewer, Network, Shaper, Join string
}

func (a *attacker) tls() *tls.Config { return identity.PinnedTLS(a.Trust, identity.NewClock(time.Now)) }

// failed says that an attack was none.
func (a *attacker) failed(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// attack has a process of its own attack until ctx ends. It gives way to others on this machine, since attackers have
// machines of their own.
func (a *attacker) attack(ctx context.Context, t *testing.T) (wait func()) {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, program)
	cmd.Env, cmd.Stderr = append(os.Environ(), attacksBy+"="+string(text)), &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	err = cmd.Start()
	if err == nil {
		err = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, 10)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := cmd.Wait(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the attack ended: %v", err)
		}
		if said.Len() > 0 {
			t.Errorf("the attack says: %s", said.String())
		}
	}
}
