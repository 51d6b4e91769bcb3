package agentcmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/agent/metrics"
	"heddle/internal/api"
	"heddle/internal/cli"
)

func NewMetrics(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := &cobra.Command{
		Use: "metrics", Short: "Print the agent's metrics in Prometheus' text format",
		Long: "Print the agent's metrics in Prometheus' text format, the same that \"heddle agent " +
			"--metrics\" serves: " +
			"for a quick look, for the textfile collector, or when you do not want an open port.",
		Example: "  heddle metrics\n  heddle metrics | promtool check metrics", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (string, error) {
				return s.Metrics(ctx)
			})
			if err != nil {
				return err
			}
			_, err = io.WriteString(d.Stdout, text)
			return err
		},
	}
	t.Flags(d, c)
	return c
}

// metricsFlags adds the flags that say where an agent serves its metrics. Each has an environment variable, for service
// managers.
func metricsFlags(d cli.Deps, c *cobra.Command, l *metrics.Listen) {
	f := c.Flags()
	f.StringVar(&l.Address, "metrics", d.Env("HEDDLE_METRICS", ""),
		"serve metrics at ADDRESS:PORT or a unix socket's path (environment HEDDLE_METRICS)")
	f.StringVar(&l.Cert, "metrics-cert", d.Env("HEDDLE_METRICS_CERT", ""),
		"certificate to serve them with, PEM (environment HEDDLE_METRICS_CERT)")
	f.StringVar(&l.Key, "metrics-key", d.Env("HEDDLE_METRICS_KEY", ""), "its key, PEM (environment HEDDLE_METRICS_KEY)")
	f.StringVar(&l.ClientCA, "metrics-client-ca", d.Env("HEDDLE_METRICS_CLIENT_CA", ""),
		"answer callers with a certificate from one of these, PEM (environment HEDDLE_METRICS_CLIENT_CA)")
	f.StringVar(&l.TokenFile, "metrics-token-file", d.Env("HEDDLE_METRICS_TOKEN_FILE", ""),
		"answer callers that bring the token in this file (environment HEDDLE_METRICS_TOKEN_FILE)")
}
