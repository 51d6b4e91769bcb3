package rpc

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/identity"
)

// ask joins by the API alone, with the key that the machine has on disk.
func (m *machine) ask(name, token string) (*controllerv1.JoinHostResponse, error) {
	m.c.t.Helper()
	parsed := must(identity.ParseJoinToken(token))(m.c.t)
	csr := must(m.keyOf().Request())(m.c.t)
	return m.c.call(identity.JoinTLS(parsed, identity.NewClock(time.Now))).JoinHost(m.c.t.Context(),
		&controllerv1.JoinHostRequest{Token: token, Name: name, Csr: csr})
}

// A join of which the answer was lost is repeated, and makes the same host.
func TestJoin_IsRepeatedWhereItsAnswerWasLost(t *testing.T) {
	c := newController(t)
	m := &machine{c: c, dir: t.TempDir()}
	token := c.token()
	lost := must(m.ask("esx1", token))(t)
	m.join("esx1", token, false)
	if m.record.Host() != lost.GetIdentity().GetHost() || m.record.Name() != "esx1" {
		t.Errorf("it is host %s (%s), and was %s", m.record.Host(), m.record.Name(), lost.GetIdentity().GetHost())
	}
	if again := must(cluster.Load(m.dir))(t); again.Host() != m.record.Host() || again.Name() != "esx1" ||
		len(again.Controllers()) != 1 {
		t.Errorf("after a restart it is %s (%s)", again.Host(), again.Name())
	}
}

// A token is good for one host, also for the holder of the key that it was used with.
func TestJoin_AUsedTokenMakesNoOtherHost(t *testing.T) {
	c := newController(t)
	m := &machine{c: c, dir: t.TempDir()}
	token := c.token()
	must(m.ask("esx1", token))(t)
	refused := func(what, name string, by *machine) {
		t.Helper()
		if _, err := by.ask(name, token); err == nil || !strings.Contains(err.Error(), "has been used") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another key", "esx1", &machine{c: c, dir: t.TempDir()})
	refused("another name", "esx2", m)
	must(people{c.Server}.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx1"}))(t)
	refused("a host that was removed", "esx1", m)
	other := &machine{c: c, dir: t.TempDir()}
	must(other.ask("esx1", c.token()))(t)
	refused("a host of which another machine has the name now", "esx1", m)
	if got := c.shown("esx2"); got != nil {
		t.Errorf("there is %v", got)
	}
}

// Who has shown no certificate can make the controller read no more than a token takes.
func TestJoin_AGuestSendsLittle(t *testing.T) {
	m := &machine{c: newController(t), dir: t.TempDir()}
	_, err := m.ask(strings.Repeat("a", guestBody), m.c.token())
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("a guest's 64 KiB: %v", err)
	}
}
