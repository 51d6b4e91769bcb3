package api

import (
	"context"
	"time"

	agentv1 "heddle/api/heddle/agent/v1"
)

// ConfigQuery names a configuration.
type ConfigQuery struct {
	// Number is the number of a version in the history; 0 for the applied configuration.
	Number int `json:"number,omitempty"`
	// Running requests the applied configuration with the changes by commands since: ports connected, moved and
	// blocked.
	Running bool `json:"running,omitempty"`
}

// AppliedConfig is a configuration that is, or was, applied.
type AppliedConfig struct {
	// Number counts from 1; 0 if the configuration is not in the history.
	Number int `json:"number"`
	// Applied: this is the configuration that is applied now.
	Applied bool      `json:"applied"`
	At      time.Time `json:"at,omitzero"`
	// By is the command that applied it: "apply /etc/heddle/heddle.yaml". File is where it came from.
	By   string `json:"by"`
	File string `json:"file"`
	// Restores is the number of the version that it brought back; 0 for a configuration of its own.
	Restores int `json:"restores,omitempty"`
	// Size is the length of the content, in bytes.
	Size int `json:"size"`
	// Content is the configuration, in YAML; "" in a list.
	Content string `json:"content,omitempty"`
}

// ConfigService has the calls about configurations.
type ConfigService interface {
	// Config returns one configuration.
	Config(context.Context, ConfigQuery) (*AppliedConfig, error)
	// Configs lists those in the history, the oldest first, without their content.
	Configs(context.Context) ([]AppliedConfig, error)
}

// Config returns one configuration.
func (c *Client) Config(ctx context.Context, q ConfigQuery) (*AppliedConfig, error) {
	return ask[*AppliedConfig](ctx, c, c.config.GetConfig, q)
}

// Configs lists the configurations in the history.
func (c *Client) Configs(ctx context.Context) ([]AppliedConfig, error) {
	return ask[[]AppliedConfig](ctx, c, c.config.ListConfigs, nil)
}

// GetConfig returns one configuration.
func (a *adapter) GetConfig(ctx context.Context, m *agentv1.GetConfigRequest) (*agentv1.GetConfigResponse, error) {
	return answer[agentv1.GetConfigResponse](ctx, a, m, a.service.Config)
}

// ListConfigs lists the configurations in the history.
func (a *adapter) ListConfigs(
	ctx context.Context, m *agentv1.ListConfigsRequest,
) (*agentv1.ListConfigsResponse, error) {
	return answer[agentv1.ListConfigsResponse](ctx, a, m, bare(a.service.Configs))
}
