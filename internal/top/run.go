package top

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heddle/internal/api"
)

// Read reads all counters.
type Read func(context.Context) ([]api.Stats, error)

// answer is what a reading came to.
type answer struct {
	all []api.Stats
	err error
	at  time.Time
}

// view is a model on a terminal.
type view struct {
	*Model
	term    *terminal
	read    Read
	answers chan answer
	keys    chan []byte
	crashed chan any
	asking  bool
}

// Run shows the view on a terminal until a key, or the end of ctx, ends it. The terminal is then as it was, whatever happened: also
// after a panic, and while the program is stopped.
func Run(ctx context.Context, m *Model, in, out *os.File, colour bool, read Read) (err error) {
	t, err := openTerminal(in, out, colour)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.leave()) }()
	v := &view{Model: m, term: t, read: read, answers: make(chan answer, 1), keys: make(chan []byte), crashed: make(chan any, 2)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go v.guard(func() { v.listen(ctx, in) })
	return v.loop(ctx)
}

// guard has the panic of a goroutine happen in the loop, which puts the terminal back.
func (v *view) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			v.crashed <- p
		}
	}()
	f()
}

// listen passes on what is typed. A read that is waiting when the view ends goes with the process.
func (v *view) listen(ctx context.Context, in io.Reader) {
	for {
		b := make([]byte, 256)
		n, err := in.Read(b)
		if err != nil {
			return
		}
		select {
		case v.keys <- b[:n]:
		case <-ctx.Done():
			return
		}
	}
}

func (v *view) loop(ctx context.Context) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGHUP)
	defer signal.Stop(signals)
	tick := time.NewTicker(v.Interval)
	defer tick.Stop()
	v.ask(ctx)
	for {
		if err := v.term.draw(v.Model); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case p := <-v.crashed:
			panic(p)
		case <-tick.C:
			v.ask(ctx)
		case a := <-v.answers:
			if err := v.take(a); err != nil {
				return err
			}
		case b := <-v.keys:
			for _, k := range Split(b) {
				if quit, err := v.act(v.Key(k), signals); quit || err != nil {
					return err
				}
			}
		case s := <-signals:
			if quit, err := v.signalled(s, signals); quit || err != nil {
				return err
			}
		}
	}
}

// ask has one reading made at a time, beside the loop: keys work while an agent is slow.
func (v *view) ask(ctx context.Context) {
	if v.asking || v.Paused {
		return
	}
	v.asking = true
	go v.guard(func() {
		all, err := v.read(ctx)
		v.answers <- answer{all, err, time.Now()}
	})
}

// take shows a reading. An agent that is away may come back; one that never answered is an error.
func (v *view) take(a answer) error {
	v.asking = false
	switch {
	case a.err != nil && v.before == nil:
		return a.err
	case a.err != nil:
		v.Fault = a.err.Error()
	default:
		v.Update(a.all, a.at)
	}
	return nil
}

func (v *view) act(a Action, signals chan os.Signal) (quit bool, err error) {
	switch a {
	case Quit:
		return true, nil
	case Suspend:
		return false, v.suspend(signals)
	case Redraw:
		v.term.stale = true
	}
	return false, nil
}

func (v *view) signalled(s os.Signal, signals chan os.Signal) (quit bool, err error) {
	switch s {
	case syscall.SIGHUP:
		return true, nil
	case syscall.SIGTSTP:
		return false, v.suspend(signals)
	case syscall.SIGCONT: // stopped from outside, without being asked: the shell has had the terminal
		return false, v.term.enter()
	}
	v.term.stale = true
	return false, nil
}

// settle is how long the news of being continued may take to arrive. It does not come where the process was not stopped.
const settle = 200 * time.Millisecond

// suspend gives the terminal back, stops as any program does at Ctrl-Z, and takes the terminal again when continued.
func (v *view) suspend(signals chan os.Signal) error {
	if err := v.term.leave(); err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	continued := time.After(settle)
	for waiting := true; waiting; {
		select {
		case s := <-signals:
			waiting = s != syscall.SIGCONT
		case <-continued:
			waiting = false
		}
	}
	return v.term.enter()
}
