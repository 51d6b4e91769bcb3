package connection

import (
	"context"
	"errors"
	"net/netip"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/identity"
)

// Who is this host in its cluster.
func (c *Connection) Who() (id, name string) {
	if record, _ := c.Member(); record != nil {
		return record.Host(), record.Name()
	}
	return "", ""
}

// Self is the host's id in its cluster; "" while it is in none.
func (c *Connection) Self() string {
	id, _ := c.Who()
	return id
}

// Between is who this host is to other hosts of its cluster.
func (c *Connection) Between() (*identity.Between, error) {
	record, _ := c.Member()
	if record == nil {
		return nil, errors.New("this host is in no cluster")
	}
	return record.Between(), nil
}

// Local is the address from which this host talks to its controller; none before it did.
func (c *Connection) Local() []netip.Addr {
	if client := c.talks(); client != nil {
		if at, ok := client.Local(); ok {
			return []netip.Addr{at}
		}
	}
	return nil
}

// Changed says that what the host has may be another.
func (c *Connection) Changed() {
	for _, f := range c.changed {
		f()
	}
}

// Report has the controllers told what the host has, where it is another. It returns false without a conversation.
func (c *Connection) Report() bool {
	client := c.talks()
	if client != nil {
		client.Changed()
	}
	return client != nil
}

// Prepared tells the controllers whether the host could make a change of theirs.
func (c *Connection) Prepared(id string, problems []string) {
	if client := c.talks(); client != nil {
		client.Prepared(id, problems)
	}
}

// Settle has the ports claimed that are connected and not bound.
func (c *Connection) Settle() {
	if client := c.talks(); client != nil {
		client.Settle()
	}
}

// Ended has the controller told that the connecting of an adapter has ended.
func (c *Connection) Ended(vm, adapter string) {
	if client := c.talks(); client != nil {
		client.Ended(vm, adapter)
	}
}

// Offer has the controllers told which moves this host takes over.
func (c *Connection) Offer(all *controllerv1.HostOffers) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offered = all; c.client != nil {
		c.client.Offer(all)
	}
}

// Reach asks some controller for a sign of life.
func (c *Connection) Reach(ctx context.Context) error {
	client := c.talks()
	if client == nil {
		return errors.New("this host is in no cluster")
	}
	return client.Reach(ctx)
}

// Claim asks a controller for a static port.
func (c *Connection) Claim(ctx context.Context, q *controllerv1.PortClaim) (*controllerv1.PortAnswer, error) {
	client := c.talks()
	if client == nil {
		return nil, cluster.ErrNoController
	}
	return client.Claim(ctx, q)
}

// Describe asks a controller what a port has where its guest runs.
func (c *Connection) Describe(ctx context.Context, q *controllerv1.DescribeArrivalRequest) (
	*controllerv1.DescribeArrivalResponse, error) {
	client := c.talks()
	if client == nil {
		return nil, cluster.ErrNoController
	}
	return client.Describe(ctx, q)
}
