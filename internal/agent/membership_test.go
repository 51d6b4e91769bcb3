package agent

import (
	"testing"
	"testing/synctest"

	"heddle/internal/agent/cluster"
)

// A conversation that is to begin anew while the agent ends does not: it would outlive the loop that it calls.
func TestMembership_BeginsNothingAfterItsEnd(t *testing.T) {
	m := &membership{record: &cluster.Record{}}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.begin()
	if m.client != nil {
		t.Error("a conversation has begun")
	}
}

// Who ends the conversation while another ends it too waits for the end as well: what the conversation uses is released
// then.
func TestMembership_EveryEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &membership{done: make(chan struct{})}
		ended := false
		go func() { m.end(); ended = true }()
		synctest.Wait()
		if ended {
			t.Error("it does not wait")
		}
		close(m.done)
		synctest.Wait()
		if !ended {
			t.Error("it waits on")
		}
	})
}
