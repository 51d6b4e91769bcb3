package top

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Read reads all counters.
type Read func(context.Context) (Reading, error)

// View is what Show displays; one goroutine calls its methods.
type View interface {
	// Draw returns the content of a terminal of that size, in characters.
	Draw(width, height int) []Line
	// Key processes a pressed key.
	Key(string) Action
	// Every returns how often Read is called; Resting: not for now.
	Every() time.Duration
	Resting() bool
	// Read returns get, which fetches the next content; it runs outside the goroutine of the methods, one call at a
	// time. take, which runs like a method, shows that content. An error of Read's functions ends the view.
	Read() (get func(context.Context) (take func() error))
}

// ports is the view of a model.
type ports struct {
	*Model
	read Read
}

func (p ports) Draw(width, height int) []Line {
	p.Width, p.Height = width, height
	return p.Screen()
}

func (p ports) Every() time.Duration { return p.Interval }
func (p ports) Resting() bool        { return p.Paused }

// Read makes a reading. An agent that disappears may come back; one that never answered is an error.
func (p ports) Read() func(context.Context) func() error {
	return func(ctx context.Context) func() error {
		all, err := p.read(ctx)
		at := time.Now()
		return func() error { return p.take(all, err, at) }
	}
}

func (p ports) take(all Reading, err error, at time.Time) error {
	switch {
	case err != nil && p.before == nil:
		return err
	case err != nil:
		p.Fault = err.Error()
	default:
		p.UpdateHosts(all, at)
	}
	return nil
}

// Run shows ports with Show.
func Run(ctx context.Context, m *Model, in, out *os.File, colour bool, read Read) error {
	return Show(ctx, ports{m, read}, in, out, colour)
}

// view is a View on a terminal.
type view struct {
	View
	term    *terminal
	answers chan func() error
	keys    chan []byte
	crashed chan any
	asking  bool
}

// Show displays the view on a terminal until a key, or the end of ctx, ends it. Afterwards the terminal is restored in
// every case, also after a panic, and while the program is stopped.
func Show(ctx context.Context, w View, in, out *os.File, colour bool) (err error) {
	t, err := openTerminal(in, out, colour)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.leave()) }()
	v := &view{View: w, term: t, answers: make(chan func() error, 1), keys: make(chan []byte),
		crashed: make(chan any, 2)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go v.guard(func() { v.listen(ctx, in) })
	return v.loop(ctx)
}

// guard passes the panic of a goroutine on to the loop, which restores the terminal.
func (v *view) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			v.crashed <- p
		}
	}()
	f()
}

// listen passes on what is typed. A read that is waiting when the view ends lasts until the process ends.
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
	tick := time.NewTicker(v.Every())
	defer tick.Stop()
	v.ask(ctx)
	for {
		if err := v.term.draw(v.Draw); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case p := <-v.crashed:
			panic(p)
		case <-tick.C:
			v.ask(ctx)
		case take := <-v.answers:
			v.asking = false
			if err := take(); err != nil {
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

// ask makes one reading at a time, outside the loop: keys work while an agent is slow.
func (v *view) ask(ctx context.Context) {
	if v.asking || v.Resting() {
		return
	}
	v.asking = true
	get := v.Read()
	go v.guard(func() { v.answers <- get(ctx) })
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
	case syscall.SIGCONT: // stopped from outside, without a request: the shell has used the terminal
		return false, v.term.enter()
	}
	v.term.stale = true
	return false, nil
}

// settle is how long the signal of being continued may take to arrive. It does not arrive if the process was not
// stopped.
const settle = 200 * time.Millisecond

// suspend restores the terminal, stops the process as any program does at Ctrl-Z, and takes the terminal again when
// continued.
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
