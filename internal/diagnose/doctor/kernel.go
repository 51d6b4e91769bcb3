package doctor

import (
	"fmt"
	"strings"
)

// The oldest kernel that has tcx.
const (
	oldestMajor = 6
	oldestMinor = 6
)

func kernelAge(f Facts) []Finding {
	var found []Finding
	k := f.Kernel
	if k.Major < oldestMajor || k.Major == oldestMajor && k.Minor < oldestMinor {
		found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("kernel %s is older than %d.%d, the first with "+
			"tcx", k.Release, oldestMajor, oldestMinor),
			Remedy: "boot a newer kernel; on Debian 12: apt install -t bookworm-backports linux-image-amd64"})
	}
	if !k.BTF {
		found = append(found, Finding{Level: Note, Text: "the kernel does not describe its types (no " +
			"/sys/kernel/btf/vmlinux): the switch works, tracing tools do not",
			Remedy: "boot a kernel with CONFIG_DEBUG_INFO_BTF, as the distributions' are"})
	}
	if k.Realtime {
		found = append(found, Finding{Level: Note, Text: "the kernel is a PREEMPT_RT one. It is not supported if it " +
			"does not serialize bottom halves on each CPU: a frame can go by what is known of another one",
			Remedy: fmt.Sprintf("look with: grep PREEMPT_RT_NEEDS_BH_LOCK /boot/config-%s; if that says \"is not "+
				"set\", boot a kernel without PREEMPT_RT", k.Release)})
	}
	if k.Confidential {
		found = append(found, Finding{Level: Wrong, Text: "kernel lockdown is in its confidentiality mode, which " +
			"keeps programs from being loaded",
			Remedy: "boot with lockdown=integrity"})
	}
	return found
}

func kernelTCX(f Facts) []Finding {
	if f.Kernel.TCX {
		return nil
	}
	return []Finding{{Level: Wrong, Text: "the kernel cannot attach programs to devices by tcx",
		Remedy: "boot Linux 6.6 or newer with CONFIG_NET_XGRESS (CONFIG_NET_CLS_ACT) and CONFIG_BPF_SYSCALL"}}
}

func kernelJIT(f Facts) []Finding {
	if f.Kernel.JIT {
		return nil
	}
	return []Finding{{Level: Wrong, Text: "programs are interpreted, which makes each frame many times as dear",
		Remedy: "sysctl -w net.core.bpf_jit_enable=1, and keep it in /etc/sysctl.d"}}
}

// backlog compares the queue for the copies of a flooded frame with the largest segment (K17).
func backlog(f Facts) []Finding {
	members := map[string]int{}
	for _, p := range f.Ports {
		members[p.Switch+", "+p.VLAN]++
	}
	largest, where := 0, ""
	for segment, n := range members {
		if n > largest || n == largest && segment < where {
			largest, where = n, segment
		}
	}
	if largest <= f.Kernel.Backlog {
		return nil
	}
	return []Finding{{Level: Wrong, Text: fmt.Sprintf("a broadcast to the %d ports of %s does not fit the kernel's "+
		"queue of received frames, which holds %d: copies of it are lost", largest, where, f.Kernel.Backlog),
		Remedy: fmt.Sprintf("sysctl -w net.core.netdev_max_backlog=%d, and keep it in /etc/sysctl.d", 4*largest)}}
}

func fileSystem(f Facts) []Finding {
	p := f.Pins
	switch {
	case p.Mounted && !p.Lasting:
		return []Finding{{Level: Wrong, Text: fmt.Sprintf("the bpf file system at %s is seen by this process's group "+
			"alone: the switch ends when the last of them does", p.Dir),
			Remedy: fmt.Sprintf("mount it outside, before the agent starts: mkdir -p %s && "+
				"mount -t bpf -o mode=0700 bpf %s", p.Dir, p.Dir)}}
	case !p.Mounted && f.Agent.Running:
		return []Finding{{Level: Wrong, Text: fmt.Sprintf("no bpf file system at %s: the switch ends with its agent",
			p.Dir),
			Remedy: "wait a minute for the agent to mount it again, or restart the agent"}}
	case !p.Mounted:
		return []Finding{{Level: OK, Text: fmt.Sprintf("none at %s yet; the agent mounts it", p.Dir)}}
	}
	return nil
}

func pins(f Facts) []Finding {
	var found []Finding
	has := false
	for _, name := range f.Pins.Agents {
		has = has || name == f.Agent.Name
		if !f.Pins.Alive[name] {
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("agent %s has a switch in the kernel and "+
				"does not run: nobody follows its devices", name),
				Remedy: fmt.Sprintf("start it, or take the switch down: heddle down --agent %s", name)})
		}
	}
	if f.Agent.Running && !has {
		found = append(found, Finding{Level: Wrong, Text: "the running agent has nothing pinned in the bpf file " +
			"system: its switch ends with it",
			Remedy: "wait a minute for the agent to pin it again, or restart the agent"})
	}
	return found
}

func bridgeNetfilter(f Facts) []Finding {
	if !f.BridgeNetfilter {
		return nil
	}
	return []Finding{{Level: Note, Text: "br_netfilter sends frames on Linux bridges through the host's packet " +
		"filter (Docker and Kubernetes ask for that). Frames on Heddle's switches do not pass it; " +
		"guests that are still on a bridge may be cut off by it", Remedy: "attach those guests to a switch, or " +
		"sysctl -w net.bridge.bridge-nf-call-iptables=0 where nothing needs it"}}
}

// list joins names in a sentence.
func list(names []string) string { return strings.Join(names, ", ") }
