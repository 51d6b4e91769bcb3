package agent

import (
	"context"
	"errors"
	"net/netip"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/identity"
	"heddle/internal/uplinks"
)

// reach asks some controller for a sign of life.
func (m *membership) reach(ctx context.Context) error {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return errors.New("this host is in no cluster")
	}
	return client.Reach(ctx)
}

// Settled is called in the loop after each reconcile: what the host has may be another.
func (m *membership) Settled(uplinks.InForce) {
	m.statics.settleKept()
	m.reports()
}

// reports has the controllers told what the host has, where it is another.
func (m *membership) reports() {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return
	}
	client.Changed()
	if m.statics.appeared() {
		client.Settle()
	}
	if m.slicing.worthAnother() {
		m.anew() // so that the controllers send it again
	}
	// This may make a whole plan: not under the lock, which the conversation takes too.
	if id, problems, changed := m.slicing.preparedAnew(); changed {
		client.Prepared(id, problems)
	}
}

// offer has the controllers told which moves this host takes over.
func (m *membership) offer(all *controllerv1.HostOffers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offered = all; m.client != nil {
		m.client.Offer(all)
	}
}

// between is who this host is to other hosts of its cluster.
func (m *membership) between() (*identity.Between, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return nil, errors.New("this host is in no cluster")
	}
	return m.record.Between(), nil
}

// local is the address from which this host talks to its controller; none before it did.
func (m *membership) local() []netip.Addr {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		if at, ok := m.client.Local(); ok {
			return []netip.Addr{at}
		}
	}
	return nil
}

// settle has the ports claimed that are connected and not bound.
func (m *membership) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		m.client.Settle()
	}
}

// claim asks a controller for a static port.
func (m *membership) claim(ctx context.Context, q *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return nil, cluster.ErrNoController
	}
	return client.Claim(ctx, q)
}

// describe asks a controller what a port has where its guest runs.
func (m *membership) describe(ctx context.Context, q *controllerv1.DescribeArrivalRequest) (
	*controllerv1.DescribeArrivalResponse, error) {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client == nil {
		return nil, cluster.ErrNoController
	}
	return client.Describe(ctx, q)
}

// ended has the controller told that the connecting of an adapter has ended.
func (m *membership) ended(vm, adapter string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		m.client.Ended(vm, adapter)
	}
}
