package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/report"
)

// MetricsOptions are the options of "heddle bench metrics".
type MetricsOptions struct {
	// Heddle is the program that runs the agent, with the arguments that precede the others.
	Heddle []string
	// Rounds is how many scrapes are measured, at least 1.
	Rounds int
	Now    func() time.Time
}

// agentPatience is how long an agent may take to answer.
const agentPatience = 60 * time.Second

// scrapeBudget is what a scrape of manyPorts may take, in seconds.
const scrapeBudget = 0.05

// Metrics measures how long a scrape of an agent with 1,000 ports takes, from the request to the last byte, and how
// many series and bytes it has. The ports have their counters in the kernel and MAC learning, but no devices. It leaves
// nothing behind.
func Metrics(ctx context.Context, o MetricsOptions) (rep *report.Report, err error) {
	if o.Rounds < 1 {
		return nil, errors.New("rounds must be positive")
	}
	ns, err := netns.New(fmt.Sprintf("hb%d-metrics", os.Getpid()))
	if err != nil {
		return nil, err
	}
	defer func() { err = orLeft(err, ns.Delete()) }()
	dir, err := os.MkdirTemp("", "hb-metrics-")
	if err != nil {
		return nil, err
	}
	defer func() { err = orLeft(err, os.RemoveAll(dir)) }()
	env := report.Collect(o.Now())
	s := &scraped{program: o.Heddle, ns: ns, dir: dir}
	defer func() { err = orLeft(err, s.end()) }()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	samples := make([]float64, 0, o.Rounds)
	series, size := 0, 0
	for range o.Rounds + 1 {
		began := time.Now()
		text, err := s.scrape(ctx)
		if err != nil {
			return nil, err
		}
		samples = append(samples, time.Since(began).Seconds())
		series, size = strings.Count(text, "\nheddle_"), len(text)
	}
	samples = samples[1:] // the first one fills caches
	spread := report.Summarise(samples)
	rep = &report.Report{Name: "bench metrics", Environment: env, Rows: []report.Row{{
		{Name: "ports", Value: manyPorts}, {Name: "series", Value: series}, {Name: "bytes", Value: size},
		{Name: "time", Title: "per scrape (quartiles)", Value: spread, Unit: report.Seconds},
		{Name: "samples", Value: samples, Hidden: true}}}}
	rep.Budgets = []report.Budget{report.Hold("a scrape of 1,000 ports", spread.Median, report.Seconds, report.AtMost,
		scrapeBudget)}
	return rep, nil
}

// scraped is an agent that is scraped over a unix socket.
type scraped struct {
	program []string
	ns      *netns.NS
	dir     string
	agent   *exec.Cmd
}

func (s *scraped) command(args ...string) *exec.Cmd {
	all := append(append(append([]string{}, s.program[1:]...), args...), "--run-dir", filepath.Join(s.dir, "run"),
		"--state-dir", filepath.Join(s.dir, "state"))
	return exec.Command(s.program[0], all...)
}

func (s *scraped) socket() string { return filepath.Join(s.dir, "metrics") }

func (s *scraped) start(ctx context.Context) error {
	var b strings.Builder
	b.WriteString("switches:\n- name: bench\n  portGroups: [{name: vms, security: {forgedTransmits: accept, " +
		"macLearning: {enabled: true}}}]\nports:\n")
	for i := range manyPorts {
		fmt.Fprintf(&b, "- {name: vm%d/eth0, switch: bench, portGroup: vms, device: tap%d}\n", i, i)
	}
	config := filepath.Join(s.dir, "heddle.yaml")
	if err := os.WriteFile(config, []byte(b.String()), 0o600); err != nil {
		return err
	}
	s.agent = s.command("agent", "--name", "bench", "--config", config, "--metrics", s.socket())
	if err := s.ns.Start(s.agent); err != nil {
		s.agent = nil
		return err
	}
	for deadline := time.Now().Add(agentPatience); ; {
		_, err := s.scrape(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("the agent does not answer: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// scrape requests the metrics like Prometheus, without compression.
func (s *scraped) scrape(ctx context.Context) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket())
		}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/metrics", nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, b)
	}
	return string(b), err
}

// end removes the agent and what it put into the kernel.
func (s *scraped) end() error {
	if s.agent == nil {
		return nil
	}
	down := s.command("down", "--agent", "bench", "--purge")
	if err := s.ns.Start(down); err != nil {
		return err
	}
	err := down.Wait()
	_ = s.agent.Process.Kill() // it has ended already, if down worked
	_ = s.agent.Wait()
	return err
}
