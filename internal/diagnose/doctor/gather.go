package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/agent/instance"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/interrupt"
	"heddle/internal/host/netspace"
	"heddle/internal/identity"
	"heddle/internal/spec"
)

// Where says where to look for facts.
type Where struct {
	Agent            string // name of the agent
	RunDir, StateDir string
	Config           string // the agent's configuration file
	Version          string // of this program
}

// Gather collects the facts of the host, its network namespace and the agent. What cannot be determined is in Unknown;
// Gather never fails.
func Gather(ctx context.Context, w Where) Facts {
	f := Facts{Unknown: map[Fact]string{}, Devices: map[string]Device{}}
	if id, err := os.ReadFile("/etc/machine-id"); err == nil {
		f.Machine = string(id)
	}
	f.Clock = Clock{time.Now(), identity.NewClock(time.Now).Floor}
	f.kernel()
	f.pins(ctx, w)
	cfg := f.config(ctx, w)
	f.askAgent(ctx, w, cfg)
	f.inAgentsNamespace(w)
	return f
}

// inAgentsNamespace examines the devices in the agent's network namespace, which need not be that of this process.
func (f *Facts) inAgentsNamespace(w Where) {
	look := func() error {
		f.BridgeNetfilter = read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "1"
		f.Forwarding = read("/proc/sys/net/ipv4/ip_forward") == "1"
		f.devices(w)
		return nil
	}
	here, err := instance.Place()
	there := f.Agent.Place
	if err != nil || there == "" || there == here || bootOf(there) != bootOf(here) {
		// an agent's devices end with the boot
		_ = look()
		if there == "" && os.Geteuid() != 0 && f.noneHere() { // the agent's namespace is not known
			f.Unknown[FactDevices] = "none of the switches' devices is in this network namespace, and which one is " +
				"the agent's is only shown to root: run this as root"
		}
		return
	}
	path, err := instance.FindPlace(there)
	switch {
	case err == nil && path != "":
		f.Agent.Elsewhere = path
		err = netspace.In(path, look)
	case err == nil && !f.Agent.Running:
		err = fmt.Errorf("the network namespace that agent %s has its devices in is gone", f.Agent.Name)
	case err == nil:
		err = fmt.Errorf("agent %s has its devices in another network namespace, which cannot be found from here: "+
			"run this as root, and inside it", f.Agent.Name)
	}
	if err != nil {
		f.Unknown[FactDevices] = err.Error()
	}
}

// noneHere reports whether none of the devices of uplinks and ports is in the examined namespace.
func (f *Facts) noneHere() bool {
	named := 0
	for _, u := range f.Uplinks {
		if _, ok := f.Devices[u.Device]; ok {
			return false
		}
		named++
	}
	for _, p := range f.Ports {
		if _, ok := f.Devices[p.Device]; ok {
			return false
		}
		named++
	}
	return named > 0
}

// bootOf returns the part of a place that identifies the boot.
func bootOf(place string) string {
	boot, _, _ := strings.Cut(place, " ")
	return boot
}

// read returns a small file's content without surrounding space, "" if it cannot be read.
func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// elsewhere is why a parameter of the whole machine cannot be read in another namespace.
const elsewhere = "this kernel parameter is only shown in the machine's first network namespace"

func (f *Facts) kernel() {
	k := &f.Kernel
	k.Release = read("/proc/sys/kernel/osrelease")
	_, _ = fmt.Sscanf(k.Release, "%d.%d", &k.Major, &k.Minor)
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	k.BTF = err == nil
	k.Realtime = read("/sys/kernel/realtime") == "1"
	k.Confidential = strings.Contains(read("/sys/kernel/security/lockdown"), "[confidentiality]")
	if jit := read("/proc/sys/net/core/bpf_jit_enable"); jit != "" {
		k.JIT = jit != "0"
	} else {
		f.Unknown[FactJIT] = elsewhere
	}
	if k.Backlog, err = strconv.Atoi(read("/proc/sys/net/core/netdev_max_backlog")); err != nil {
		f.Unknown[FactBacklog] = elsewhere
	}
}

// bpfFSMagic is the type of a bpf file system in statfs(2).
const bpfFSMagic = 0xcafe4a11

func (f *Facts) pins(ctx context.Context, w Where) {
	p := &f.Pins
	p.Dir, p.Alive = filepath.Join(w.RunDir, "bpf"), map[string]bool{}
	var fs unix.Statfs_t
	switch err := unix.Statfs(p.Dir, &fs); {
	case errors.Is(err, os.ErrPermission):
		f.Unknown[FactMounts] = "run this as root"
	case err == nil:
		p.Mounted = fs.Type == bpfFSMagic
	}
	mounts, err := os.ReadFile("/proc/1/mountinfo")
	if err != nil {
		f.Unknown[FactMounts] = "the machine's mounts cannot be read: run this as root"
	}
	p.Lasting = mountedAt(string(mounts), p.Dir)
	if !p.Mounted {
		return
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		f.Unknown[FactPins] = "run this as root"
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			p.Agents = append(p.Agents, e.Name())
			_, err := api.NewClient(api.SocketPath(w.RunDir, e.Name())).State(ctx)
			p.Alive[e.Name()] = err == nil
		}
	}
}

// mountedAt reports whether a bpf file system is mounted at dir, by the lines of mountinfo (proc_pid_mountinfo(5): the
// mount point is the fifth field, the type follows the separator).
func mountedAt(mountinfo, dir string) bool {
	for line := range strings.Lines(mountinfo) {
		left, right, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if len(fields) > 4 && fields[4] == dir && len(kind) > 0 && kind[0] == "bpf" {
			return true
		}
	}
	return false
}

func (f *Facts) config(ctx context.Context, w Where) *spec.Config {
	f.Config.File = w.Config
	b, err := interrupt.Do(ctx, func() ([]byte, error) { return spec.ReadFile(w.Config) })
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		f.Unknown[FactConfig] = err.Error()
		return nil
	}
	f.Config.Exists = true
	cfg, err := spec.Parse(w.Config, b)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			f.Config.Faults = append(f.Config.Faults, strings.TrimSpace(line))
		}
		return nil
	}
	if f.Config.Empty = cfg.Empty(); f.Config.Empty {
		return nil
	}
	return cfg
}

func (f *Facts) askAgent(ctx context.Context, w Where, cfg *spec.Config) {
	f.Agent = Agent{Name: w.Agent, Own: w.Version}
	_, err := os.Stat(filepath.Join(w.StateDir, w.Agent, "state.json"))
	if f.Agent.Remembers = err == nil; f.Agent.Remembers {
		f.Agent.StateFault = state.Fault(filepath.Join(w.StateDir, w.Agent))
	}
	s, err := api.NewClient(api.SocketPath(w.RunDir, w.Agent)).State(ctx)
	switch {
	case err == nil:
		f.Agent.Running, f.Agent.Version, f.Agent.Warnings = true, s.Agent.Version, s.Agent.Warnings
		f.Agent.Place, f.Agent.Lookalikes = s.Agent.Place, s.Agent.Lookalikes
		f.fromAgent(s)
		if m, err := api.NewClient(api.SocketPath(w.RunDir, w.Agent)).Membership(ctx); err == nil {
			f.Agent.Member = m
		}
		if h, err := api.NewClient(api.SocketPath(w.RunDir, w.Agent)).NetworkHealth(ctx); err == nil {
			f.Agent.Probed, f.Agent.Network = int(h.Uplinks), h.Findings
		}
		return
	case !errors.Is(err, api.ErrNoAgent):
		f.Unknown[FactAgent] = err.Error()
	}
	if st, err := state.Peek(filepath.Join(w.StateDir, w.Agent)); err == nil && f.Agent.Remembers {
		f.Agent.Place = st.Place
	}
	if cfg != nil {
		f.fromFile(cfg)
	}
}

func (f *Facts) fromAgent(s *api.State) {
	sizes := map[string]int{}
	for _, sw := range s.Switches {
		sizes[sw.Name] = sw.MTU
	}
	for _, u := range s.Uplinks {
		f.Uplinks = append(f.Uplinks, Uplink{Switch: u.Switch, Name: u.Name, Device: u.Device,
			SwitchMTU: sizes[u.Switch], State: u.State, Reason: u.Reason, Before: u.RunsBefore,
			Tunnel: u.Tunnel != nil})
	}
	for _, p := range s.Ports {
		f.Ports = append(f.Ports, Port{Switch: p.Switch, Name: p.Name, Device: p.Device, VLAN: p.SegmentText(),
			Host: p.Role == spec.Host, SwitchMTU: sizes[p.Switch], State: p.State, Reason: p.Reason,
			Before: p.RunsBefore})
	}
}

func (f *Facts) fromFile(cfg *spec.Config) {
	sizes := map[string]int{}
	for _, sw := range cfg.Switches {
		sizes[sw.Name] = sw.ActualMTU()
		for _, u := range sw.Uplinks {
			f.Uplinks = append(f.Uplinks, Uplink{Switch: sw.Name, Name: u.Name, Device: u.Device,
				SwitchMTU: sw.ActualMTU()})
		}
	}
	for _, p := range cfg.Ports {
		f.Ports = append(f.Ports, Port{Switch: p.Switch, Name: p.Name, Device: p.Device, VLAN: "port group " +
			p.PortGroup, Host: p.ActualRole() == spec.Host, SwitchMTU: sizes[p.Switch]})
	}
}
