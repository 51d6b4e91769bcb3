package agent

import (
	"net/http"

	"heddle/internal/agent/cluster"
	"heddle/internal/agent/connection"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/locations"
	"heddle/internal/agent/migration"
	"heddle/internal/agent/part"
	"heddle/internal/agent/staticports"
	"heddle/internal/uplinks"
)

// membership is the host's part in a cluster of controllers: what it has of their definition, and what it reports.
type membership struct {
	*inCluster
	definition *definition.Part
	connection *connection.Connection
	slicing    *slicing
	answers    *answers
	changer    *changer
	looking    http.Handler // answers those who look by way of a controller
	statics    *staticports.Part
	isolation  *isolation
	moving     *migration.Part
	locating   *locations.Part
	parts      *part.Table
}

// options are what the agent is in a conversation with a controller.
func (m *membership) options() cluster.Options {
	return cluster.Options{Host: member{m}, Together: member{m}, Version: m.version, ChecksMeant: true,
		Calls: m.looking, Ports: m.statics, Moves: m.moving, Talks: m.parts.Talks(), Kept: m.kept}
}

// Settled is called in the loop after each reconcile: what the host has may be another.
func (m *membership) Settled(uplinks.InForce) {
	m.statics.SettleKept()
	m.reports()
}

// reports has the controllers told what the host has, where it is another.
func (m *membership) reports() {
	if !m.connection.Report() {
		return
	}
	if m.statics.Appeared() {
		m.connection.Settle()
	}
	if m.slicing.worthAnother() {
		m.connection.Anew() // so that the controllers send it again
	}
	// This may make a whole plan: not under the lock, which the conversation takes too.
	if id, problems, changed := m.slicing.preparedAnew(); changed {
		m.connection.Prepared(id, problems)
	}
}

// Close ends the conversation.
func (m *membership) Close() error { return m.connection.Close() }
