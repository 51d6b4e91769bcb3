package trace

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func (s *subject) uplinkVLAN(c *diagnose.Cause, at *place) {
	vid := s.vid
	if s.res.Placed {
		vid = s.res.Segment.VLAN
	}
	carried := at.uplink.VLANs
	ranges := strings.FieldsFunc(carried.String(), func(r rune) bool { return r == ',' })
	setBy(c, "uplinks[].vlans", plan.Row{Policy: "vlans", Value: plan.FieldValueOf(ranges), From: uplinkOf(at)})
	c.Value = carried.String()
	what := fmt.Sprintf("VLAN %d", vid)
	if vid == 0 {
		what = "untagged frames (0)"
	}
	c.Why = fmt.Sprintf("the uplink carries %s, and not %s", none(carried.String()), what)
	c.Change = "Add the VLAN to the uplink's list; the port of the physical switch must carry it as well."
	carried.AddRange(vid, vid)
	s.edit(c, diagnose.EditUplink, at.id.Name,
		fmt.Sprintf(`vlans: ["%s"]`, strings.ReplaceAll(carried.String(), ",", `", "`)))
}

// uplinkOf returns the source of an uplink's settings.
func uplinkOf(at *place) plan.Source { return plan.Source{Level: plan.FromUplink, Name: at.id.Name} }

// noUplink: none of the uplinks that the port's teaming names can be used.
func (s *subject) noUplink(c *diagnose.Cause, at *place) {
	team := &at.port.Policy.Teaming
	setRow(c, at.port, "teaming.active")
	var states []string
	unused := []string{}
	for _, u := range at.sw.Uplinks {
		f, ok := s.Facts[u.ID]
		state := "not named by the teaming"
		switch named := slices.Contains(team.Active.V, u.ID.Name) || slices.Contains(team.Standby.V, u.ID.Name) ||
			s.inLAG(at.sw, team, u.ID.Name); {
		case !ok:
			state = "not connected"
		case !f.Up:
			state = "down"
		case u.Drained:
			state = "drained"
		case f.Out != nil:
			state = f.Out.Text()
		case !named:
			unused = append(unused, u.ID.Name)
		}
		states = append(states, u.ID.Name+": "+state)
	}
	c.Why = fmt.Sprintf("the frame has to leave the host, and no uplink that port %s may use can be used: %s",
		at.id.Name, strings.Join(states, "; "))
	c.Change, c.Command = "Bring an uplink back that the teaming names.", "heddle uplink list"
	if len(unused) > 0 {
		c.Change = "Name an uplink that can be used in the teaming, or bring one back that it names."
		s.set(c, at.port, "teaming.active", strings.Join(unused, ","))
	}
}

// inLAG reports whether an uplink is a member of a LAG that a team names.
func (s *subject) inLAG(sw *plan.Switch, team *plan.Teaming, uplink string) bool {
	return slices.ContainsFunc(sw.LAGs, func(g *plan.LAG) bool {
		return slices.Contains(g.Uplinks, uplink) && (slices.Contains(team.Active.V, g.Name) ||
			slices.Contains(team.Standby.V, g.Name))
	})
}

func (s *subject) changedMAC(c *diagnose.Cause, p *plan.Port) {
	seen := s.Facts[p.ID].SeenMAC
	c.Why = fmt.Sprintf("its adapter uses %s and not the port's %s", seen, p.InitialMAC)
	if p.Policy.MACChanges.V {
		setRow(c, p, "security.macChanges")
		c.Why += ", and that address is another's"
		c.Change = "Give the adapter an address of its own."
		return
	}
	c.Change = "Let the adapter change its address, or set it back to the port's."
	s.set(c, p, "security.macChanges", string(spec.Accept))
}

// loop: the checks against loops refused a copy of a frame from outside.
func (s *subject) loop(c *diagnose.Cause, at *place, why abi.Reason) {
	name := "reversePath"
	if !s.dst.IsGroup() {
		name = "reversePathPromiscuous"
	}
	s.check(c, name, "the physical network cannot bring a frame twice")
	if why == abi.ReasonReflected {
		c.Why = fmt.Sprintf("a port of this host sent from %s within the last second: this is its frame coming back",
			s.src)
		return
	}
	c.Why = fmt.Sprintf("the frame came by %s, and port %s uses another uplink (%s teaming, %s): by that one it "+
		"comes as well", s.from.id.Name, at.id.Name,
		at.port.Policy.Teaming.Policy.V, at.port.Origin(at.port.Policy.Teaming.Policy.From))
}

// looped: Heddle has blocked the port, or the frame is a loop probe.
func (s *subject) looped(c *diagnose.Cause, at *place) {
	why := s.Facts[at.id].LoopBlocked
	if at.port == nil || why == nil {
		c.Why = "the frame is a probe that looks for loops: it is for the agent alone"
		c.Change = "Nothing: no guest needs such frames."
		return
	}
	setRow(c, at.port, "security.loopDetection")
	c.Why = fmt.Sprintf("Heddle has blocked port %s: %s", at.id.Name, why.Cause())
	c.Command = s.command(at.id, "port unblock")
}
