package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"heddle/internal/host/ownfile"
	"heddle/internal/platform/audit"
)

// Times and sizes of an exporter.
const (
	firstWait = time.Second
	lastWait  = 30 * time.Second
	// lookEvery is how often the log is looked at where nothing tells of more.
	lookEvery = 10 * time.Second
	mostLines = 256
)

// Options are what an exporter needs.
type Options struct {
	Audit *audit.Log
	// Controller is the controller's name, which goes with each line.
	Controller string
	Log        *slog.Logger
	Stdout     io.Writer
	// FirstWait is how long to wait after a first failure; a second if it is zero.
	FirstWait time.Duration
}

// Status is how far an exporter is.
type Status struct {
	Target string
	// Sent is how many lines were delivered since the start, Behind how many bytes of the log wait.
	Sent, Behind int64
	// Lost is how often lines were removed for age before they could be sent.
	Lost int64
	// Error is why nothing is delivered since then; "" where all is well.
	Error string
	Since time.Time
}

// Exporter sends the log to one target.
type Exporter struct {
	Options
	target *Target
	path   string // of the file with the positions

	mu     sync.Mutex
	at     map[string]audit.Position
	status Status
}

// New makes an exporter, which goes on where it was.
func New(t *Target, o Options) (*Exporter, error) {
	o.FirstWait = cmp.Or(o.FirstWait, firstWait)
	sum := sha256.Sum256([]byte(t.String()))
	x := &Exporter{Options: o, target: t, path: filepath.Join(o.Audit.Dir(), "export-"+hex.EncodeToString(sum[:6])+
		".json"), at: map[string]audit.Position{}, status: Status{Target: t.String()}}
	text, err := ownfile.Read(x.path)
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &x.at)
	}
	if err != nil { // what was sent is sent again
		o.Log.Warn("it is not known how far the audit log was sent", "to", t.String(), "err", err)
		x.at = map[string]audit.Position{}
	}
	return x, nil
}

// Status is how far it is.
func (x *Exporter) Status() Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.status
	for _, name := range audit.Series() {
		s.Behind += x.Audit.Behind(name, x.at[name])
	}
	return s
}

// Run sends what is written until ctx ends.
func (x *Exporter) Run(ctx context.Context) {
	written, stop := x.Audit.Written()
	defer stop()
	to, err := x.target.open(x.Controller, x.Stdout)
	if err != nil {
		x.failed(err)
		x.Log.Error("the audit log is not sent", "to", x.target.String(), "err", err)
		return
	}
	defer func() { _ = to.close() }() // what was sent has been accepted
	wait := x.FirstWait
	for ctx.Err() == nil {
		more, err := x.step(ctx, to)
		pause := lookEvery
		switch {
		case err != nil && ctx.Err() == nil:
			x.failed(err)
			pause, wait = wait, min(2*wait, lastWait)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		case more:
			wait = x.FirstWait
			continue
		}
		wait = x.FirstWait
		x.well()
		select {
		case <-written:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// step sends the next lines of each series; more says that there may be others.
func (x *Exporter) step(ctx context.Context, to sink) (more bool, err error) {
	for _, name := range audit.Series() {
		x.mu.Lock()
		at := x.at[name]
		x.mu.Unlock()
		lines, next, lost, err := x.Audit.Read(name, at, mostLines)
		if err != nil {
			return false, fmt.Errorf("read the audit log: %w", err)
		}
		if lost {
			lines = append([]audit.Line{lostLine(name, time.Now())}, lines...)
		}
		if len(lines) == 0 {
			continue
		}
		if err := to.send(ctx, lines); err != nil {
			return false, err
		}
		more = true
		x.sent(name, next, len(lines), lost)
	}
	if !more {
		return false, nil
	}
	return true, x.keep()
}

func (x *Exporter) sent(name string, next audit.Position, lines int, lost bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at[name] = next
	x.status.Sent += int64(lines)
	if lost {
		x.status.Lost++
	}
}

// keep writes down how far it is.
func (x *Exporter) keep() error {
	x.mu.Lock()
	text, err := json.Marshal(x.at)
	x.mu.Unlock()
	if err == nil {
		err = ownfile.Replace(x.path, text)
	}
	if err != nil {
		return fmt.Errorf("keep how far the audit log was sent: %w", err)
	}
	return nil
}

func (x *Exporter) failed(err error) {
	x.mu.Lock()
	first := x.status.Error == ""
	if first {
		x.status.Since = time.Now()
	}
	x.status.Error = err.Error()
	x.mu.Unlock()
	if first {
		x.Log.Warn("the audit log can't be sent, and is sent later", "to", x.target.String(), "err", err)
	}
}

func (x *Exporter) well() {
	x.mu.Lock()
	was := x.status.Error
	x.status.Error, x.status.Since = "", time.Time{}
	x.mu.Unlock()
	if was != "" {
		x.Log.Info("the audit log is sent again", "to", x.target.String())
	}
}
