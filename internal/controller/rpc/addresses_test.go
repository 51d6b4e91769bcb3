package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/addresses"
	"heddle/internal/platform/store"
)

// pooled is a definition whose hosts have so many host ports with addresses from one pool.
func pooled(pool string, ports int) string {
	var b strings.Builder
	b.WriteString("switches: [{name: dvs, uplinks: [{name: uplink1}], portGroups: [{name: mgmt}]}]\ntemplates:\n- " +
		"name: all\n  switches: [{name: dvs}]\n  hostPorts:\n")
	for i := range ports {
		fmt.Fprintf(&b, "  - {name: vmk%d, switch: dvs, portGroup: mgmt, pools: [%s]}\n", i, pool)
	}
	return b.String()
}

// second is another controller on the same store.
func (c *controller) second() *Server {
	c.t.Helper()
	s := must(New(c.Options))(c.t)
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() { s.Run(ctx) })
	c.t.Cleanup(func() { cancel(); g.Wait() })
	return s
}

// joinAt lets a host join by the API alone at that controller.
func (c *controller) joinAt(s *Server, name string) error {
	m := &machine{c: c, dir: c.t.TempDir()}
	_, err := s.JoinHost(c.t.Context(), &controllerv1.JoinHostRequest{Token: c.token(), Name: name,
		Csr: must(m.keyOf().Request())(c.t)})
	return err
}

// given are the addresses of hosts, by whom they were given to, from what the store has.
func (c *controller) given() map[string]string {
	c.t.Helper()
	if err := c.Store.Sync(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	all := map[string]string{}
	for _, o := range c.Store.List(addresses.Kind) {
		f := newFleet(c.Log, 1)
		addressing{f}.takeAddresses(store.Event{Key: o.Key, Object: &o})
		for _, g := range f.addresses.Of(o.Name) {
			user := o.Name + "/" + g.Port
			if other := all[g.Address.String()]; other != "" {
				c.t.Errorf("%s was given to %s and %s", g.Address, other, user)
			}
			all[g.Address.String()] = user
		}
	}
	return all
}

// Hosts join at two controllers while the definition changes: no address is given twice, and every host that is there
// at the end has one for each of its host ports. Small steps of the writer make all of it many transactions.
func TestAddresses_AreGivenOnce(t *testing.T) {
	c := newController(t)
	other := c.second()
	c.define(pooled("192.0.2.0/24", 1))
	const hosts = 30
	var g sync.WaitGroup
	for i := range hosts {
		s := []*Server{c.Server, other}[i%2]
		g.Go(func() {
			if err := c.joinAt(s, fmt.Sprintf("esx%02d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	for ports := range 4 {
		g.Go(func() {
			if _, err := (people{other}).ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
				Content: pooled("192.0.2.0/24", ports+1)}); err != nil && connect.CodeOf(err) != connect.CodeAborted {
				t.Error(err) // another change of the definition may have been first
			}
		})
	}
	g.Wait()
	c.define(pooled("192.0.2.0/24", 3))
	all := c.given()
	if len(all) != 3*hosts {
		t.Errorf("%d host ports have addresses, want %d", len(all), 3*hosts)
	}

	// As many again do not fit. Nothing changes, and the error names the pool.
	_, err := people{other}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
		Content: pooled("192.0.2.0/24", 9)})
	if err == nil || !strings.Contains(err.Error(), "pool 192.0.2.0/24 has no free address for host port vmk") {
		t.Errorf("a pool that is exhausted: %v", err)
	}
	if now := c.given(); len(now) != len(all) {
		t.Errorf("after a change that was refused %d addresses are given, before %d", len(now), len(all))
	}

	// More hosts than a transaction has room for.
	const more = 100
	var list []store.Change
	for i := range more {
		doc := must(json.Marshal(hostDoc{Name: fmt.Sprintf("more%02d", i)}))(t)
		list = append(list, store.Change{Key: store.Key{Kind: store.KindHost, Name: fmt.Sprintf("more%02d", i)},
			Doc: doc})
	}
	must(c.Store.Write(t.Context(), list))(t)
	c.define(pooled("10.0.0.0/16", 8))
	if now := c.given(); len(now) != 8*(hosts+more) {
		t.Errorf("%d host ports have addresses, want %d", len(now), 8*(hosts+more))
	}
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx07"}))(t)
	if now := c.given(); len(now) != 8*(hosts+more-1) || slices.Contains(slices.Collect(valuesOf(now)), "esx07/vmk0") {
		t.Errorf("after a host was removed %d addresses are given", len(now))
	}
}

func valuesOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// A host that lacks addresses, because it joined while the definition changed, gets them when it connects. What it has
// is that of the shared content and of its own, by difference.
func TestAddresses_AHostThatLacksThemGetsThemWhenItConnects(t *testing.T) {
	c := newController(t)
	c.define(pooled("192.0.2.0/24", 2))
	m := c.joins("esx1")
	o, ok := c.Store.Get(addresses.Key("esx1"))
	if !ok {
		t.Fatal("it has got none")
	}
	if _, err := c.Store.Write(t.Context(),
		[]store.Change{{Key: o.Key, Delete: true, IfVersion: o.Version}}); err != nil {
		t.Fatal(err)
	}
	c.await("the controller knows that it has none", func() bool {
		c.fleet.mu.Lock()
		defer c.fleet.mu.Unlock()
		return len(c.fleet.addresses.Of("esx1")) == 0
	})
	m.start()
	c.await("the host has its host ports", func() bool {
		h := c.shown("esx1")
		return h.GetState() == controllerv1.HostState_HOST_STATE_UP && len(h.GetHostPorts()) == 2
	})
	c.define(pooled("192.0.2.64-192.0.2.99/24", 2))
	c.await("it has the other ones", func() bool {
		h := c.shown("esx1")
		return h.GetState() == controllerv1.HostState_HOST_STATE_UP && len(h.GetHostPorts()) == 2 &&
			slices.Equal(h.GetHostPorts()[1].GetAddresses(), []string{"192.0.2.65/24"})
	})
}
