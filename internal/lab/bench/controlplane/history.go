package controlplane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heddle/internal/api"
	"heddle/internal/controller/history"
	"heddle/internal/lab/report"
)

const (
	// looksAtHistory is how often each kind of look at the history is measured.
	looksAtHistory = 100
	// aPage is how many changes one list has, as "heddle definition history" asks for; manyOfIt is the most there are.
	aPage, manyOfIt = 20, 1000
	// calledChanges are made by calls, once a history is full: with the last of them, the oldest ones go.
	calledChanges = 3 * history.Stretch
)

// looks are the kinds of looks at a history, in the order of the table.
const (
	listNewest = "list the newest 20"
	listDeep   = "list 20 in the middle"
	listMany   = "list 1000"
	listFilter = "list 20 by a filter"
	listNone   = "list by a filter that nothing passes"
	diffAny    = "diff of two revisions"
)

// pastLoad is what was measured of a history.
type pastLoad struct {
	changes int
	calling float64 // seconds of a change that is made by a call
	looks   []look
	// kept are the changes that there are once more were made than are to be kept, aged once they may be only that old.
	kept, aged int64
	// pruning is how long the slowest change took of those that removed what was too old, in seconds.
	pruning  float64
	database float64 // bytes
}

// look is one kind of look at the history.
type look struct {
	what    string
	seconds []float64
}

// past fills a history and looks at it.
func (m *measurement) past(ctx context.Context) error {
	m.history = &pastLoad{changes: m.History}
	if err := m.fillStopped(ctx, m.History); err != nil {
		return err
	}
	began := time.Now()
	if err := m.fill(ctx, calledChanges); err != nil {
		return err
	}
	m.history.calling = time.Since(began).Seconds() / calledChanges
	revisions, err := m.keptChanges(ctx)
	if err != nil {
		return err
	}
	m.history.kept = int64(len(revisions))
	if err := m.lookAt(ctx, revisions); err != nil {
		return err
	}
	if m.memory, m.mostMemory, err = m.process.memory(); err != nil {
		return err
	}
	status, err := m.process.Status(ctx)
	if err != nil {
		return err
	}
	m.history.database = float64(status.Store.Size)
	return m.age(ctx)
}

// fillStopped makes changes while the controller is stopped, and starts it again.
func (m *measurement) fillStopped(ctx context.Context, n int) error {
	if err := m.process.kill(syscall.SIGTERM); err != nil {
		return err
	}
	args := append(slices.Clone(m.process.program[1:]), "fill-history", strconv.Itoa(n), "--data-dir",
		filepath.Join(m.process.dir, "data"))
	fill := exec.CommandContext(ctx, m.process.program[0], args...)
	fill.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	out, err := fill.CombinedOutput()
	if err != nil {
		return fmt.Errorf("fill the history: %w: %s", err, out)
	}
	if m.revision, err = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err != nil {
		return fmt.Errorf("fill the history: %q is no revision", out)
	}
	_, err = m.process.start(ctx, m.revision)
	return err
}

// fill makes changes, each by a call as people make it.
func (m *measurement) fill(ctx context.Context, n int) error {
	for i := range n {
		m.def.vlan = 100 + (m.def.vlan+1)%1000
		out, err := m.process.Define(ctx, api.Define{File: fmt.Sprintf("fleet-%d.yaml", i%100), Content: m.def.text(),
			Message: fmt.Sprintf("change %d", i)})
		if err != nil {
			return err
		}
		m.revision = out.Revision
	}
	return nil
}

// lookAt measures how long looks at the history take. revisions are those that it has.
func (m *measurement) lookAt(ctx context.Context, revisions []int64) error {
	rng := rand.New(rand.NewPCG(1, 2))
	at := func() int64 { return revisions[rng.IntN(len(revisions))] }
	list := func(least int, query func() api.ChangeQuery) func() error {
		return func() error {
			q := query()
			got, err := m.process.Changes(ctx, q)
			if err == nil && len(got.Changes) < least {
				err = fmt.Errorf("%d changes instead of %d: %+v", len(got.Changes), least, q)
			}
			return err
		}
	}
	some := min(aPage, len(revisions)/2)
	for _, l := range []struct {
		what string
		do   func() error
	}{
		{listNewest, list(some, func() api.ChangeQuery { return api.ChangeQuery{Limit: aPage} })},
		{listDeep, list(1, func() api.ChangeQuery { return api.ChangeQuery{Limit: aPage, Before: at()} })},
		{listMany, list(some, func() api.ChangeQuery { return api.ChangeQuery{Limit: manyOfIt} })},
		{listFilter, list(1, func() api.ChangeQuery { return api.ChangeQuery{Limit: aPage, Text: "FLEET-42.yaml"} })},
		{listNone, list(0, func() api.ChangeQuery { return api.ChangeQuery{Limit: aPage, Who: "nobody"} })},
		{diffAny, func() error {
			_, err := m.process.Compare(ctx, at(), at())
			return err
		}},
	} {
		one := look{what: l.what}
		for range looksAtHistory {
			began := time.Now()
			if err := l.do(); err != nil {
				return fmt.Errorf("%s: %w", l.what, err)
			}
			one.seconds = append(one.seconds, time.Since(began).Seconds())
		}
		m.history.looks = append(m.history.looks, one)
	}
	return nil
}

// keptChanges are the revisions that the history has, by reading all of it. One that is missing is an error.
func (m *measurement) keptChanges(ctx context.Context) (revisions []int64, err error) {
	q := api.ChangeQuery{Limit: manyOfIt}
	last := int64(0)
	for {
		list, err := m.process.Changes(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, c := range list.Changes {
			if last != 0 && c.Number != last-1 {
				return nil, fmt.Errorf("change %d comes before change %d in the history", c.Number, last)
			}
			last, revisions = c.Number, append(revisions, c.Revision)
		}
		if q.Before = list.More; q.Before == 0 {
			return revisions, nil
		}
	}
}

// age has changes go by their age, which is a moment.
func (m *measurement) age(ctx context.Context) error {
	if err := m.process.kill(syscall.SIGTERM); err != nil {
		return err
	}
	m.process.args = append(m.process.args, "--history-time", "1ms")
	if _, err := m.process.start(ctx, m.revision); err != nil {
		return err
	}
	for range history.Stretch {
		began := time.Now()
		if err := m.fill(ctx, 1); err != nil {
			return err
		}
		m.history.pruning = max(m.history.pruning, time.Since(began).Seconds())
	}
	left, err := m.keptChanges(ctx)
	m.history.aged = int64(len(left))
	return err
}

// rows of the table.
func (p *pastLoad) rows(hosts int) (rows []report.Row) {
	for _, l := range p.looks {
		rows = append(rows, report.Row{{Name: "hosts", Value: hosts}, {Name: "work", Value: l.what},
			{Name: "all", Title: "all (quartiles)", Value: report.Summarise(l.seconds), Unit: report.Seconds},
			{Name: "p99", Value: percentile(l.seconds, 0.99), Unit: report.Seconds},
			{Name: "samples", Value: l.seconds, Hidden: true}})
	}
	return append(rows, report.Row{{Name: "hosts", Value: hosts}, {Name: "work", Value: "history"},
		{Name: "changes", Value: p.changes, Unit: report.Count},
		{Name: "change", Title: "a change", Value: p.calling, Unit: report.Seconds},
		{Name: "kept", Value: int(p.kept), Unit: report.Count},
		{Name: "aged", Title: "left by age", Value: int(p.aged), Unit: report.Count},
		{Name: "pruning", Title: "slowest removal", Value: p.pruning, Unit: report.Seconds},
		{Name: "database", Value: p.database, Unit: report.Bytes}})
}

// budgets hold for a history of any size.
func (p *pastLoad) budgets() (list []report.Budget) {
	for _, l := range p.looks {
		list = append(list, report.Hold(fmt.Sprintf("%s, of %d changes: p99", l.what, p.changes),
			percentile(l.seconds, 0.99), report.Seconds, report.AtMost, historyBudget))
	}
	most := float64(p.changes + 2*history.Stretch)
	return append(list, report.Hold("changes kept, at most", float64(p.kept), report.Count, report.AtMost, most),
		report.Hold("changes kept, at least", float64(p.kept), report.Count, report.AtLeast, float64(p.changes)),
		report.Hold("changes left by age", float64(p.aged), report.Count, report.AtMost, 2*history.Stretch))
}
