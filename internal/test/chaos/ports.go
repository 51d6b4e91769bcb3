package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// PortsCall is a call about the static ports of one port group. A VM claims a port once in a history.
type PortsCall struct {
	// Verb is claim, release or list.
	Verb string
	VM   string
	// Port that the VM has got; "" where it is not known.
	Port string
	// Free: the port may have been given up before this call has ended, by an attempt of which nothing is known.
	Free bool
	// Full: it was refused because no port is free.
	Full bool
	// Again: the claim may have been carried out a second time, or not: its agent may have asked again.
	Again bool
	// Bound are the VMs by port, as they are listed.
	Bound map[string]string
}

// The verbs.
const (
	Claim   = "claim"
	Release = "release"
	List    = "list"
)

// portsText is the ports that are bound, in order.
func portsText(bound map[string]string) string {
	var list []string
	for port, vm := range bound {
		list = append(list, port+"="+vm)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func portsOf(text string) map[string]string {
	bound := map[string]string{}
	for item := range strings.FieldsSeq(text) {
		port, vm, _ := strings.Cut(item, "=")
		bound[port] = vm
	}
	return bound
}

// portsModel is a port group with so many ports, each of which one VM can have.
func portsModel(ports int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return "" },
		Step: func(state, input, _ any) (bool, any) {
			now, c := state.(string), input.(Call)
			switch c.Ports.Verb {
			case List:
				return now == portsText(c.Ports.Bound), now
			case Claim:
				return claimed(now, c, ports)
			}
			return released(now, c.Ports)
		},
		DescribeOperation: func(input, _ any) string {
			c := input.(Call)
			return fmt.Sprintf("%s of VM %s, port %s: %s; full %v, bound %s", c.Ports.Verb, c.Ports.VM, c.Ports.Port,
				c.Outcome, c.Ports.Full, portsText(c.Ports.Bound))
		},
	}
}

// claimed is a step of a claim.
func claimed(now string, c Call, ports int) (bool, any) {
	bound := portsOf(now)
	if c.Ports.Full {
		return len(bound) == ports, now
	}
	has := slices.Contains(slices.Collect(maps.Values(bound)), c.Ports.VM)
	if bound[c.Ports.Port] != "" || has {
		return c.Ports.Again, now
	}
	bound[c.Ports.Port] = c.Ports.VM
	return true, portsText(bound)
}

func released(now string, q *PortsCall) (bool, any) {
	bound := portsOf(now)
	for port, vm := range bound {
		if vm == q.VM {
			delete(bound, port)
			return true, portsText(bound)
		}
	}
	return q.Free, now
}

// CheckPorts says what is wrong with the calls about the static ports of a port group that has so many.
func CheckPorts(calls []Call, ports int, patience time.Duration) error {
	var operations []porcupine.Operation
	for _, c := range calls {
		switch {
		case c.Ports == nil:
		case c.Ports.Verb == Claim && c.Outcome == Unknown:
			for _, seen := range seenClaims(calls, c) {
				operations = append(operations, operation(seen, seen))
			}
		case c.Ports.Verb == Release && c.Outcome == Unknown:
			q := *c.Ports
			q.Free, c.Ports = true, &q
			operations = append(operations, operation(c, c))
		default:
			operations = append(operations, operation(c, c))
		}
	}
	return check(portsModel(ports), operations, patience)
}

// seenClaims is what a claim of unknown outcome has done: it was carried out before the end of the first list that has
// it. One that no list has has done nothing that counts. It was perhaps carried out again where a list has it that
// began after it was given up.
func seenClaims(calls []Call, claim Call) (seen []Call) {
	var first, again *Call
	for i := range calls {
		c := &calls[i]
		if c.Ports == nil || c.Ports.Verb != List || c.Ports.portOf(claim.Ports.VM) == "" {
			continue
		}
		if first == nil || c.Ends < first.Ends {
			first = c
		}
		if again == nil && slices.ContainsFunc(calls, func(r Call) bool {
			return r.Ports != nil && r.Ports.Verb == Release && r.Ports.VM == claim.Ports.VM && r.Outcome == Done &&
				r.Ends < c.Begins
		}) {
			again = c
		}
	}
	for _, list := range []*Call{first, again} {
		if list != nil {
			q := *claim.Ports
			q.Port, q.Again = list.Ports.portOf(q.VM), list == again
			seen = append(seen, Call{Client: claim.Client, Begins: claim.Begins, Ends: list.Ends, Outcome: Done,
				Ports: &q})
		}
	}
	return seen
}

// portOf is the port of a VM in a list, "" for none.
func (q *PortsCall) portOf(vm string) string {
	for port, of := range q.Bound {
		if of == vm {
			return port
		}
	}
	return ""
}
