package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

func agentAnswers(f Facts) []Finding {
	a := f.Agent
	if !a.Running {
		if a.Remembers {
			text := "the kernel goes on forwarding, and nobody follows devices and uplinks"
			if _, unknown := f.Unknown[FactPins]; !unknown && !slices.Contains(f.Pins.Agents, a.Name) {
				text = "nothing of it is in the kernel, as after a boot or heddle down, so that its ports carry no " +
					"traffic"
			}
			return []Finding{{Level: Wrong, Text: fmt.Sprintf("agent %s does not run: %s", a.Name, text),
				Remedy: "systemctl start heddle, or heddle agent --config FILE; heddle down --purge when it is no " +
					"longer wanted"}}
		}
		return []Finding{{Level: Note, Text: fmt.Sprintf("agent %s does not run, and never has", a.Name),
			Remedy: "systemctl enable --now heddle, or heddle agent --config FILE"}}
	}
	var found []Finding
	if a.Version != a.Own {
		found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("the agent is of version %s, this program of %s",
			a.Version, a.Own),
			Remedy: "systemctl restart heddle: no frame is lost"})
	}
	for _, w := range a.Warnings {
		found = append(found, Finding{Level: Note, Text: w, Remedy: "correct in the configuration what it names, " +
			"then: heddle apply -f FILE"})
	}
	return found
}

// controllers says what keeps this host from those of its cluster.
func controllers(f Facts) []Finding {
	if f.Agent.Member == nil {
		return nil
	}
	t := f.Agent.Member.Trouble(f.Clock.Now)
	if t == nil {
		return nil
	}
	return []Finding{{Level: Wrong, Text: t.Text, Remedy: t.Remedy}}
}

// stateDirectory says why the agent can't keep a change.
func stateDirectory(f Facts) []Finding {
	if f.Agent.StateFault == "" {
		return nil
	}
	return []Finding{{Level: Wrong, Text: f.Agent.StateFault, Remedy: "make room there, or have it mounted so that " +
		"it can be written: no change is taken until then, and ports go on as they are"}}
}

// namespace says in which namespace the devices were examined, if it is not that of the command.
func namespace(f Facts) []Finding {
	if f.Agent.Elsewhere == "" {
		return nil
	}
	return []Finding{{Level: OK, Text: fmt.Sprintf("this command is in another one than agent %s: devices were "+
		"looked at in the agent's, %s", f.Agent.Name, f.Agent.Elsewhere)}}
}

func aliases(f Facts) []Finding {
	var found []Finding
	for _, text := range f.Agent.Lookalikes {
		device, _, _ := strings.Cut(strings.TrimPrefix(text, "device "), " ")
		found = append(found, Finding{Level: Note, Text: text, Remedy: fmt.Sprintf("ip link set dev %s alias \"\", "+
			"if nobody needs it", device)})
	}
	return found
}

// clock finds one that is behind. One that is ahead can't be told from a program that is old.
func clock(f Facts) []Finding {
	if !f.Clock.Now.Before(f.Clock.Passed) {
		return nil
	}
	return []Finding{{Level: Wrong, Text: fmt.Sprintf("it says %s, and this program was made on %s: events and logs "+
		"have wrong times. Frames and controllers do not need it", f.Clock.Now.UTC().Format(time.DateTime),
		f.Clock.Passed.UTC().Format(time.DateOnly)), Remedy: "let it follow time servers (chrony, " +
		"systemd-timesyncd), or set it: date -s \"YYYY-MM-DD hh:mm\""}}
}

func configuration(f Facts) []Finding {
	var found []Finding
	for _, fault := range f.Config.Faults {
		found = append(found, Finding{Level: Wrong, Text: fault, Remedy: "edit the file, then: heddle check -f " +
			f.Config.File})
	}
	if f.Config.Empty {
		found = append(found, Finding{Level: OK, Text: f.Config.File + " has no list of switches: it configures " +
			"nothing, and an agent keeps what was applied last"})
	}
	if !f.Config.Exists {
		found = append(found, Finding{Level: OK, Text: "there is none at " + f.Config.File})
	}
	return found
}

// network says what probes have found at this host's uplinks.
func network(f Facts) (found []Finding) {
	for _, n := range f.Agent.Network {
		level := Wrong
		if n.Note {
			level = Note
		}
		found = append(found, Finding{Level: level, Text: n.Text, Remedy: n.Remedy})
	}
	return found
}

func uplinks(f Facts) []Finding {
	var found []Finding
	for _, u := range f.Uplinks {
		d, there := f.Devices[u.Device]
		switch {
		case u.Tunnel && u.Reason != "":
			found = append(found, Finding{Level: Wrong, Text: u.label() + ": " + u.Reason,
				Remedy: "correct the endpoints of the tunnel, or what has their addresses; heddle uplink show " +
					printable.ShellWord(u.Name)})
		case u.Tunnel:
		case u.Device == "":
			found = append(found, Finding{Level: Note, Text: u.label() + " has no device on this host",
				Remedy: "bind one in the configuration, or leave it out of the teams"})
		case !there:
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: there is no device %s", u.label(),
				u.Device), Remedy: "ip link shows the devices there are; correct the name, or load the driver"})
		case u.State == api.Pending:
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s is not in service: %s", u.label(),
				u.Reason), Remedy: "heddle uplink show " + printable.ShellWord(u.Name)})
		case !d.Up || u.State == api.Down:
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: device %s is down or has no carrier",
				u.label(), u.Device),
				Remedy: fmt.Sprintf("ip link set %s up; check cable and switch port", u.Device)})
		}
	}
	return found
}

func ports(f Facts) []Finding {
	var found []Finding
	for _, p := range f.Ports {
		_, there := f.Devices[p.Device]
		switch {
		case p.Device == "" || p.Host && p.State == "":
		case !there:
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s: there is no device %s", p.label(),
				p.Device),
				Remedy: "start its owner; or, if it is gone for good: heddle port disconnect " +
					printable.ShellWord(p.Name)})
		case p.State == api.Pending:
			found = append(found, Finding{Level: Wrong, Text: fmt.Sprintf("%s is not in service: %s", p.label(),
				p.Reason), Remedy: "heddle port show " + printable.ShellWord(p.Name)})
		case p.State == api.Down:
			found = append(found, Finding{Level: Note, Text: fmt.Sprintf("%s is down: %s", p.label(), p.Reason),
				Remedy: "heddle port show " + printable.ShellWord(p.Name)})
		}
	}
	return found
}
