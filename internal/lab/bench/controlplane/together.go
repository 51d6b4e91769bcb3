package controlplane

import (
	"context"
	"time"

	"heddle/internal/agent/state"
	"heddle/internal/api"
)

// Prepare implements cluster.Together. A simulated host can always make a change.
func (h *host) Prepare(context.Context, string, *state.Slice) ([]string, error) { return nil, nil }

// Clock implements cluster.Together: each host's clock began at another time.
func (h *host) Clock() (int64, error) { return h.ticks(), nil }

func (h *host) ticks() int64 { return int64(time.Since(h.began)) }

// ActiveAt implements cluster.Together.
func (h *host) ActiveAt(context.Context) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(h.at.Sub(h.began)), nil
}

// awaitInstant returns at an instant of the host's clock; 0 is none.
func (h *host) awaitInstant(ctx context.Context, at int64) error {
	if at == 0 {
		return nil
	}
	timer := time.NewTimer(time.Duration(at - h.ticks()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// changeTogether makes a change again and again that all hosts make at one instant.
func (m *measurement) changeTogether(ctx context.Context) error {
	for range m.Rounds {
		before, err := m.begin()
		if err != nil {
			return err
		}
		m.def.vlan++
		began := time.Now()
		out, err := m.process.Define(ctx, api.Define{File: "fleet.yaml", Content: m.def.text(), Wait: patience,
			Together: &api.Together{Lead: time.Second, Patience: time.Minute}})
		if err != nil {
			return err
		}
		m.revision = out.Revision
		if len(out.Waiting) > 0 { // they lost their connections for a moment, as they do on a busy machine
			if _, err := m.crowd.await(ctx, m.process, m.revision, began); err != nil {
				return err
			}
		}
		m.together.seconds = append(m.together.seconds, time.Since(began).Seconds())
		m.together.hosts = append(m.together.hosts, m.crowd.delays(began)...)
		m.spreads = append(m.spreads, out.Together.Spread.Seconds())
		m.late = append(m.late, float64(len(out.Together.Late)))
		if err := m.account(&m.together, before); err != nil {
			return err
		}
		if err := m.check(); err != nil {
			return err
		}
	}
	return m.weigh()
}
