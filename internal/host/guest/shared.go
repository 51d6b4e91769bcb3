package guest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"heddle/internal/host/qmp"
)

// Times of a monitor that a manager of VMs uses too. Who connects to it waits while another client is connected.
const (
	// sharedHold is how long such a monitor is kept at most, to hear at once that a guest stops or runs.
	sharedHold = 100 * time.Millisecond
	// sharedPause is for how long it is left to others in between.
	sharedPause = 25 * time.Millisecond
	// sharedRefresh is how often the adapters are read.
	sharedRefresh = 10 * time.Second
	// sharedSilent is how often in a row it may not answer in time, because others keep it or QEMU is busy.
	sharedSilent = 6
)

// shared reports whether a monitor's socket is the one by which Proxmox VE commands its QEMUs
// (/run/qemu-server/VMID.qmp): it serves one client at a time, so nobody may keep it.
func shared(socket string) bool {
	id, is := strings.CutSuffix(filepath.Base(socket), ".qmp")
	return is && id != "" && strings.Trim(id, "0123456789") == "" &&
		filepath.Base(filepath.Dir(socket)) == "qemu-server"
}

// visits is session for a monitor that is shared: it connects for one question at a time, once a second, and for most
// of the time while a migration is under way.
func (w *watch) visits(ctx context.Context, show shows) (served bool, err error) {
	r := &runs{tell: func(now Run, asked bool) { show(asked, func(s *Sight) { s.Run = now }) }}
	var read time.Time
	for silent := 0; ; {
		look := time.Since(read) >= sharedRefresh
		switch err := w.visit(ctx, r, show, look); {
		case err == nil:
			silent, served = 0, true
		case ctx.Err() != nil:
			return served, err
		case served && silent < sharedSilent && errors.Is(err, context.DeadlineExceeded):
			silent++
			continue
		default:
			return served, err
		}
		if look {
			read = time.Now()
		}
		wait := monitorPoll
		if r.moving() {
			wait = sharedPause
		}
		next := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			next.Stop()
			return served, ctx.Err()
		case <-w.changed:
			next.Stop()
			read = time.Time{}
			if !pause(ctx, sharedPause) {
				return served, ctx.Err()
			}
		case <-w.again:
			next.Stop()
			r.doubt()
		case <-next.C:
		}
	}
}

// visit connects once. While the guest may start or stop running here it stays a moment, so that QEMU's event comes
// without a question.
func (w *watch) visit(ctx context.Context, r *runs, show shows, look bool) error {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	ask := make(chan struct{}, 1)
	c, err := qmp.Dial(ctx, w.socket, func(e qmp.Event) {
		if r.event(e) {
			signal(ask)
		}
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := r.ask(ctx, c); err != nil {
		return err
	}
	if look {
		filters, err := c.RxFilters(ctx)
		if err != nil {
			return err
		}
		show(false, func(s *Sight) { s.seen, s.filters, s.why = true, filters, "" })
	}
	if !r.moving() {
		return nil
	}
	hold := time.NewTimer(sharedHold)
	defer hold.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.Done():
		return c.Err()
	case <-w.again:
		r.doubt()
		return r.ask(ctx, c)
	case <-ask:
		return r.ask(ctx, c)
	case <-hold.C:
		return nil
	}
}
