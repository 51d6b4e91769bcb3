package rpc

import (
	"fmt"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/hostwords"
	"heddle/internal/identity"
)

// A host that says without end why it cannot activate a version writes a bounded number of lines in the log.
func TestS191_AHostFillsNoLog(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	c.up("esx1")
	c.fleet.mu.Lock()
	h, k := c.fleet.names["esx1"], c.fleet.names["esx1"].conn
	c.fleet.mu.Unlock()
	for i := range 1000 {
		said := &controllerv1.SliceAcknowledgement{Problems: []string{fmt.Sprint("fault ", i)},
			Version: &controllerv1.SliceVersion{Revision: 1, Hash: make([]byte, 32)}}
		c.fleet.said(h, k, hostwords.Bounded(&controllerv1.FollowSliceRequest{Acknowledgement: said}))
	}
	if n := c.log.count("a host cannot activate the definition"); n == 0 || n > hostwords.LineBurst+10 {
		t.Errorf("%d lines are in the log", n)
	}
}

// A stranger with tokens that do not count writes a bounded number of lines in the log.
func TestS191_AStrangerFillsNoLog(t *testing.T) {
	c := newController(t)
	for range 100 {
		wrong := identity.NewJoinToken(c.authority.Fingerprint()).Text()
		if _, err := (&machine{c: c, dir: t.TempDir()}).ask("esx1", wrong); err == nil {
			t.Fatal("it is let in")
		}
	}
	if n := c.log.count("JoinHost"); n > 15 {
		t.Errorf("%d lines are in the log", n)
	}
}
