package supervise

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// pingsPerPeriod is how often the watchdog is fed within its timeout; sd_watchdog_enabled(3) asks for at least two.
const pingsPerPeriod = 4

// Systemd is the service manager that started this process, if any. Its methods may be called by any goroutine.
type Systemd struct {
	log *slog.Logger
	// every is the least time between two keep-alive messages; 0 without a watchdog.
	every time.Duration

	mu       sync.Mutex
	lastSign time.Time
	failed   string
	present  bool
	byOrder  bool
}

// New reads the environment variables of the service manager (NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID).
func New(getenv func(string) string, log *slog.Logger) *Systemd {
	s := &Systemd{log: log, present: getenv("NOTIFY_SOCKET") != ""}
	period, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog is not fed: its environment is not valid", "err", err)
	}
	s.every = period / pingsPerPeriod
	return s
}

// Ready reports that the plan is active and commands are answered; it is also called when a reload is done.
func (s *Systemd) Ready() { s.send(daemon.SdNotifyReady) }

// Reloading reports that the configuration is being read again; Ready ends it. Type=notify-reload asks for the time
// stamp.
func (s *Systemd) Reloading() {
	s.send(daemon.SdNotifyReloading + "\n" + strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

// Stopping reports that the process is about to end. byOrder: a command asked for it ("heddle down"), so that the
// process should not be started again.
func (s *Systemd) Stopping(byOrder bool) {
	s.mu.Lock()
	s.byOrder = s.byOrder || byOrder
	s.mu.Unlock()
	s.send(daemon.SdNotifyStopping)
}

// Present reports whether there is a service manager.
func (s *Systemd) Present() bool { return s.present }

// StoppedByOrder reports whether the process ends because a command asked for it.
func (s *Systemd) StoppedByOrder() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byOrder
}

// Alive is a keep-alive. It may be called much more often than the watchdog needs.
func (s *Systemd) Alive() {
	if s.every == 0 {
		return
	}
	s.mu.Lock()
	now := time.Now()
	due := now.Sub(s.lastSign) >= s.every
	if due {
		s.lastSign = now
	}
	s.mu.Unlock()
	if due {
		s.send(daemon.SdNotifyWatchdog)
	}
}

// send logs a failure once, until it changes.
func (s *Systemd) send(state string) {
	if !s.present {
		return
	}
	_, err := daemon.SdNotify(false, state)
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != s.failed {
		s.log.Warn("the state of the agent could not be reported to the service manager", "err", err)
	}
	s.failed = text
}
