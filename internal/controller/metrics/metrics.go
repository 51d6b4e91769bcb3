package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"heddle/internal/api"
	"heddle/internal/controller/together"
	"heddle/internal/fabric"
	"heddle/internal/platform/health"
)

// Family is one metric.
type Family struct {
	Name, Help string
	Labels     []string
	Counter    bool
}

// The names of the metrics.
const (
	info        = "heddle_controller_info"
	start       = "heddle_controller_start_time_seconds"
	hosts       = "heddle_controller_hosts"
	revision    = "heddle_controller_definition_revision"
	storeUp     = "heddle_controller_store_up"
	storeSize   = "heddle_controller_store_size_bytes"
	storeInUse  = "heddle_controller_store_in_use_bytes"
	storeQuota  = "heddle_controller_store_quota_bytes"
	storeAlarms = "heddle_controller_store_alarms"
	storeLag    = "heddle_controller_store_lag_entries"
	storeLeader = "heddle_controller_store_has_leader"
	storeVotes  = "heddle_controller_store_members"
	expires     = "heddle_controller_expires_seconds"
	expiring    = "heddle_controller_expiring"
	rotating    = "heddle_controller_root_rotation"
	diskFree    = "heddle_controller_disk_free_bytes"
	diskSize    = "heddle_controller_disk_size_bytes"
	clock       = "heddle_controller_clock_synchronised"
	findings    = "heddle_controller_findings"
	calls       = "heddle_controller_audited_calls_total"
	rollouts    = "heddle_controller_rollouts"
	drives      = "heddle_controller_rollout_driver"
	agreed      = "heddle_controller_together_changes_total"
	late        = "heddle_controller_together_late_hosts_total"
	spread      = "heddle_controller_together_spread_seconds"
	signIn      = "heddle_controller_sign_in_provider_up"
	snapLast    = "heddle_controller_snapshot_time_seconds"
	snapEvery   = "heddle_controller_snapshot_interval_seconds"
	snapCount   = "heddle_controller_snapshots"
	snapFails   = "heddle_controller_snapshot_failures_total"
	refused     = "heddle_controller_refused_connections_total"
	faults      = "heddle_controller_network_faults"
	paths       = "heddle_controller_network_paths"
	tunnels     = "heddle_controller_network_tunnels"
)

// Families are all metrics, in the order of the reference page.
func Families() []Family {
	return []Family{
		{Name: info, Help: "Always 1; which controller answers, and of which version.",
			Labels: []string{"controller", "version"}},
		{Name: start, Help: "When the controller was started, in seconds since 1970."},
		{Name: hosts, Help: "Hosts of the cluster in each state, as this controller sees them.",
			Labels: []string{"state"}},
		{Name: revision, Help: "Revision of the definition."},
		{Name: storeUp, Help: "1 when etcd answers and what is read is current, 0 when reads may be old and nothing " +
			"can be changed."},
		{Name: storeSize, Help: "Size of etcd's database, in bytes."},
		{Name: storeInUse, Help: "How much of it is in use, in bytes."},
		{Name: storeQuota, Help: "Size at which etcd takes no more changes, in bytes."},
		{Name: storeAlarms, Help: "Alarms that etcd has raised, such as NOSPACE."},
		{Name: storeLag, Help: "Entries of etcd's log that the members which answer have yet to apply, at most."},
		{Name: storeLeader, Help: "1 when etcd has a leader."},
		{Name: storeVotes, Help: "Members of etcd's cluster, by whether they vote.", Labels: []string{"role"}},
		{Name: expires, Help: "When the root that issues and this controller's certificate end, in seconds since 1970.",
			Labels: []string{"subject"}},
		{Name: expiring, Help: "Roots, certificates and tokens that end within 30 days (soon), within 7 (urgent), or " +
			"have ended (over).", Labels: []string{"subject", "level"}},
		{Name: rotating, Help: "1 while a rotation of the root is under way."},
		{Name: diskFree, Help: "Free space of the file system with the controller's directory, in bytes."},
		{Name: diskSize, Help: "Size of that file system, in bytes."},
		{Name: clock,
			Help: "1 when the controller's clock follows others, 0 when it does not; absent where that can't " +
				"be found out."},
		{Name: findings, Help: "What \"heddle doctor --controller\" finds, by level.", Labels: []string{"level"}},
		{Name: signIn, Help: "1 when the identity provider answers as it should, 0 when it does not; absent " +
			"without one."},
		{Name: calls, Help: "Calls that changed something or were refused since the controller's start.",
			Labels: []string{"result"}, Counter: true},
		{Name: rollouts, Help: "Changes in stages that are open, by state: \"halted\" ones wait for somebody.",
			Labels: []string{"state"}},
		{Name: drives, Help: "1 while this controller drives changes in stages: one does, where one goes on by " +
			"itself."},
		{Name: agreed, Help: "Changes that hosts were to make together, of which this controller was asked since its " +
			"start: made, or refused since a host could not or was away.", Labels: []string{"result"}, Counter: true},
		{Name: late, Help: "Hosts that made such a change after the instant though they had been ready.",
			Counter: true},
		{Name: spread, Help: "Time between the first and the last host that made the newest such change, in seconds."},
		{Name: snapLast, Help: "When the newest snapshot by schedule was taken, in seconds since 1970; 0 for none. " +
			"This and the next three are absent where there is no schedule."},
		{Name: snapEvery, Help: "Time from one snapshot by schedule to the next, in seconds."},
		{Name: snapCount, Help: "Snapshots by schedule that there are."},
		{Name: snapFails, Help: "Snapshots by schedule that failed since the controller's start.", Counter: true},
		{Name: refused, Help: "Connections that were refused before they could ask for anything since the " +
			"controller's start: certificates by what is wrong with them, crowded for want of room or time, left by " +
			"the other side, no-tls for what is no handshake.", Labels: []string{"reason"}, Counter: true},
		{Name: faults, Help: "What \"heddle health\" finds in the network between all hosts, by code; those of " +
			"lossy, slow, apart and does-not-know are notes.", Labels: []string{"code"}},
		{Name: paths, Help: "Paths between uplinks that are probed, by what is known of them.",
			Labels: []string{"state"}},
		{Name: tunnels, Help: "Pairs of tunnel endpoints that are probed, by what is known of them.",
			Labels: []string{"state"}},
	}
}

// Source is what the metrics are of.
type Source struct {
	Status func(context.Context) *api.ControllerStatus
	// Calls are how many there were, by result.
	Calls func() map[string]int64
	// Rollouts are how many are open, by each state that an open one may have.
	Rollouts func() map[string]int
	// Drives reports whether this controller drives rollouts, Together counts changes that hosts make together.
	Drives   func() bool
	Together func() together.Counts
	// Refused are how many connections were refused, by reason.
	Refused func() map[string]int64
	// Network is what the probes between hosts have found.
	Network func() *fabric.Verdict
}

// scrapeTime bounds how long a scrape may take.
const scrapeTime = 8 * time.Second

// New makes a registry with all metrics, and those of the process.
func New(s Source) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c := &collector{Source: s, descs: map[string]*prometheus.Desc{}, kinds: map[string]prometheus.ValueType{}}
	for _, f := range Families() {
		c.descs[f.Name] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
		c.kinds[f.Name] = prometheus.GaugeValue
		if f.Counter {
			c.kinds[f.Name] = prometheus.CounterValue
		}
	}
	r.MustRegister(c)
	return r
}

type collector struct {
	Source
	descs map[string]*prometheus.Desc
	kinds map[string]prometheus.ValueType
}

// Describe says which metrics there are.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect asks the controller.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	s := c.Status(ctx)
	put := func(name string, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.descs[name], c.kinds[name], v, labels...)
	}
	put(info, 1, s.Controller, s.Version)
	put(start, seconds(s.Started))
	for _, state := range []api.HostState{api.HostUp, api.HostPending, api.HostOutOfSync, api.HostWarning,
		api.HostDown, api.HostReverted, api.HostDisconnected} {
		put(hosts, float64(s.Hosts[string(state)]), string(state))
	}
	put(revision, float64(s.Revision))
	c.store(&s.Store, put)
	c.ends(s, put)
	if s.DiskSize > 0 {
		put(diskFree, float64(s.DiskFree))
		put(diskSize, float64(s.DiskSize))
	}
	if s.Clock != api.ClockUnknown {
		put(clock, one(s.Clock == api.ClockSynchronised))
	}
	by := map[api.HealthLevel]int{}
	for _, f := range s.Findings {
		by[f.Level]++
		if f.Check == health.CheckSignIn {
			put(signIn, one(f.Level == api.HealthOK))
		}
	}
	for _, level := range []api.HealthLevel{api.HealthWrong, api.HealthNote, api.HealthUnknown} {
		put(findings, float64(by[level]), string(level))
	}
	for result, n := range c.Calls() {
		put(calls, float64(n), result)
	}
	if snap := s.Snapshots; snap != nil {
		last := 0.0
		if !snap.Last.IsZero() {
			last = seconds(snap.Last)
		}
		put(snapLast, last)
		put(snapEvery, snap.Every.Seconds())
		put(snapCount, float64(snap.Count))
		put(snapFails, float64(snap.Failures))
	}
	for state, n := range c.Rollouts() {
		put(rollouts, float64(n), state)
	}
	put(drives, one(c.Drives()))
	t := c.Together()
	put(agreed, float64(t.Made), "made")
	put(agreed, float64(t.Refused), "refused")
	put(late, float64(t.Late))
	put(spread, t.Spread.Seconds())
	for reason, n := range c.Refused() {
		put(refused, float64(n), reason)
	}
	network(c.Network(), put)
}

// network puts what the probes between hosts have found.
func network(v *fabric.Verdict, put putter) {
	by := map[fabric.Code]int{}
	for _, f := range v.Findings {
		by[f.Code]++
	}
	for _, code := range fabric.Codes() {
		put(faults, float64(by[code]), string(code))
	}
	for _, of := range []struct {
		name                  string
		all, passing, waiting int
	}{{paths, v.Paths, v.Passing, v.Waiting}, {tunnels, v.Tunnels, v.TunnelsPassing, v.TunnelsWaiting}} {
		put(of.name, float64(of.passing), "passing")
		put(of.name, float64(of.waiting), "unknown")
		put(of.name, float64(of.all-of.passing-of.waiting), "failing")
	}
}

type putter func(name string, v float64, labels ...string)

func (c *collector) store(s *api.StoreStatus, put putter) {
	put(storeUp, one(s.Error == "" && s.Stale == ""))
	put(storeAlarms, float64(len(s.Alarms)))
	if s.Size > 0 {
		put(storeSize, float64(s.Size))
		put(storeInUse, float64(s.InUse))
	}
	if s.Quota > 0 {
		put(storeQuota, float64(s.Quota))
	}
	var lag int64
	leader, by := false, map[string]int{}
	for _, m := range s.Members {
		lag, leader = max(lag, m.Lag), leader || m.Leader
		if m.Learner {
			by["learner"]++
		} else {
			by["voter"]++
		}
	}
	put(storeLag, float64(lag))
	put(storeLeader, one(leader))
	for _, role := range []string{"voter", "learner"} {
		put(storeVotes, float64(by[role]), role)
	}
}

func (c *collector) ends(s *api.ControllerStatus, put putter) {
	put(expires, seconds(s.RootEnds), "root")
	put(expires, seconds(s.CertificateEnds), "controller")
	put(rotating, one(s.RootStage != "steady"))
	by := map[[2]string]int{}
	for _, w := range s.Expiring {
		by[[2]string{w.Subject, string(w.Level)}]++
	}
	for _, subject := range []string{"root", "controller", "host", "token", "join-token"} {
		for _, level := range []api.ExpiryLevel{api.ExpirySoon, api.ExpiryUrgent, api.ExpiryOver} {
			put(expiring, float64(by[[2]string{subject, string(level)}]), subject, string(level))
		}
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
