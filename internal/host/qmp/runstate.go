package qmp

import (
	"context"
	"encoding/json"
	"fmt"
)

// Names of the events that report whether a guest runs, and the progress of its migration.
const (
	Stop      = "STOP"
	Resume    = "RESUME"
	Migration = "MIGRATION"
)

// Status returns the state of a virtual machine from query-status: "running", "paused", "inmigrate" and others.
func (c *Client) Status(ctx context.Context) (string, error) {
	return c.status(ctx, "query-status")
}

// MigrationStatus returns the status of the last migration to or from this QEMU: "active", "completed" and others; ""
// if there was none.
func (c *Client) MigrationStatus(ctx context.Context) (string, error) {
	return c.status(ctx, "query-migrate")
}

// MigrationEvents asks QEMU for an event at every step of a migration. QEMU refuses while a migration runs.
func (c *Client) MigrationEvents(ctx context.Context) error {
	type capability struct {
		Capability string `json:"capability"`
		State      bool   `json:"state"`
	}
	_, err := c.Execute(ctx, "migrate-set-capabilities", map[string]any{"capabilities": []capability{{"events", true}}})
	return err
}

// MigrationStep returns the status in a migration event; "" if it has none.
func (e Event) MigrationStep() string {
	step, err := statusOf(e.Data)
	if err != nil {
		return ""
	}
	return step
}

func (c *Client) status(ctx context.Context, query string) (string, error) {
	out, err := c.Execute(ctx, query, nil)
	if err != nil {
		return "", err
	}
	s, err := statusOf(out)
	if err != nil {
		return "", fmt.Errorf("the answer to %s has no status", query)
	}
	return s, nil
}

func statusOf(data json.RawMessage) (string, error) {
	var v struct {
		Status string `json:"status"`
	}
	err := json.Unmarshal(data, &v)
	return v.Status, err
}
