package serve

import (
	"container/list"
	"net/netip"
	"sync"
)

// crowd is a bounded number of connections, the oldest first. Where there are too many, the oldest of the network that
// has most of them is ended, so that nobody ends others' connections by making more of their own.
type crowd struct {
	most int

	mu    sync.Mutex
	order list.List
	at    map[*visitor]*list.Element
	of    map[netip.Addr]int // how many are of each network
}

func newCrowd(most int) *crowd { return &crowd{most: most} }

// enter takes one in, and ends the oldest where there are too many.
func (c *crowd) enter(v *visitor) {
	c.mu.Lock()
	if c.at == nil {
		c.at, c.of = map[*visitor]*list.Element{}, map[netip.Addr]int{}
	}
	c.at[v] = c.order.PushBack(v)
	c.of[v.network()]++
	var over *visitor
	if c.order.Len() > c.most {
		over = c.excess()
	}
	c.mu.Unlock()
	if over != nil {
		_ = over.Close() // which takes it out
	}
}

// excess is the connection that is to end, nil for none. The caller holds mu.
func (c *crowd) excess() *visitor {
	most := 0
	for _, n := range c.of {
		most = max(most, n)
	}
	for e := c.order.Front(); e != nil; e = e.Next() {
		if v, ok := e.Value.(*visitor); ok && c.of[v.network()] == most {
			return v
		}
	}
	return nil
}

// endOldest ends one that has been in it for long, if there is any.
func (c *crowd) endOldest() bool {
	c.mu.Lock()
	oldest := c.excess()
	c.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // which takes it out
	}
	return oldest != nil
}

func (c *crowd) leave(v *visitor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[v]; ok {
		c.order.Remove(e)
		delete(c.at, v)
		if c.of[v.network()]--; c.of[v.network()] == 0 {
			delete(c.of, v.network())
		}
	}
}

// end ends all of them.
func (c *crowd) end() {
	c.mu.Lock()
	var all []*visitor
	for v := range c.at {
		all = append(all, v)
	}
	c.mu.Unlock()
	for _, v := range all {
		_ = v.Close()
	}
}

func (c *crowd) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
