package connection

import (
	"testing"
	"testing/synctest"

	"heddle/internal/agent/cluster"
)

// A conversation that is to begin anew while the agent ends does not: it would outlive the loop that it calls.
func TestConnection_BeginsNothingAfterItsEnd(t *testing.T) {
	c := &Connection{record: &cluster.Record{}}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c.Begin()
	if c.client != nil {
		t.Error("a conversation has begun")
	}
}

// Who ends the conversation while another ends it too waits for the end as well: what the conversation uses is released
// then.
func TestConnection_EveryEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Connection{done: make(chan struct{})}
		ended := false
		go func() { c.End(); ended = true }()
		synctest.Wait()
		if ended {
			t.Error("it does not wait")
		}
		close(c.done)
		synctest.Wait()
		if !ended {
			t.Error("it waits on")
		}
	})
}
