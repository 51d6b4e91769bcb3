package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/adopt"
	"heddle/internal/agent/instance"
	"heddle/internal/host/hostnet"
)

// A trial that an operator must confirm is waited for like one that answers decide: the edited file is read after it,
// and until then status says that it is not.
func TestS164_AFileEditedWhileAnOperatorIsWaitedForIsRead(t *testing.T) {
	oldest, tried := readPlain, strings.Replace(readPlain, "web", "db", 1)
	edited := strings.Replace(readPlain, "web", "new", 1)
	for what, agreed := range map[string]bool{"confirmed": true, "taken back": false} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, oldest)
			onTrialByOperator(r, tried)
			if err := r.restart(edited); err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(r.ports.unused, "\n"); !strings.Contains(said, "not read yet") {
				t.Errorf("status says %q", said)
			}
			err := r.command(func(ctx context.Context) error { // the loop runs
				ctx, stop := context.WithTimeout(ctx, 20*time.Second)
				defer stop()
				// whoever waits for the trial has seen it by now, or sees it in its first look
				for range 100 {
					if err := r.Do(ctx, func() error { return nil }); err != nil {
						return err
					}
				}
				return r.decideAndAwait(ctx, agreed, edited)
			})
			if err != nil || r.saved().Config.Content != edited || len(r.ports.unused) > 0 {
				t.Errorf("%v, active is %+v, status says %q", err, r.saved().Config, r.ports.unused)
			}
		})
	}
}

// onTrialByOperator applies a file and leaves it on trial, with nobody to ask.
func onTrialByOperator(r *rig, content string) {
	r.t.Helper()
	before := r.state.Config
	if err := r.apply(content); err != nil {
		r.t.Fatal(err)
	}
	j, err := adopt.OpenJournal(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	here, err := instance.Place()
	if err != nil {
		r.t.Fatal(err)
	}
	now, err := hostnet.Boottime()
	if err != nil {
		r.t.Fatal(err)
	}
	j.Change = &adopt.Change{Phase: adopt.Waiting, What: "a trial", Place: here, File: &before, MadeAt: now,
		Within: time.Hour}
	if err := j.Save(); err != nil {
		r.t.Fatal(err)
	}
}

// decideAndAwait has the operator decide, and waits until the file is active.
func (r *rig) decideAndAwait(ctx context.Context, agreed bool, content string) error {
	err := r.Do(ctx, func() error {
		c := r.trials.records.journal.Change
		if c.Agreed = agreed; !agreed {
			c.Within = 0
		}
		r.trials.judgeChange()
		return nil
	})
	for active := false; err == nil && !active; {
		err = r.Do(ctx, func() error { active = r.state.Config.Content == content; return nil })
	}
	return err
}
