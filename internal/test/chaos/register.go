package chaos

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Outcome is what a caller knows of a call.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // nothing was changed
	Unknown Outcome = "unknown" // it may have been carried out, or may still be
)

// Call is one call in a history.
type Call struct {
	Client int
	// Begins and Ends are counted from the start of the history. Of an unknown outcome Ends says nothing.
	Begins, Ends time.Duration
	Outcome      Outcome
	// One of these.
	Definition *DefinitionCall
	Ports      *PortsCall
}

// DefinitionCall reads the definition or changes it. A text is made once only.
type DefinitionCall struct {
	Write bool
	On    int64  // the revision that the change was made on (S83)
	Text  string // what was read, or is to be
	// Revision that was read, or that the change has; 0 where that is not known.
	Revision int64
}

// History is what was asked and answered. Its methods are called from any goroutine.
type History struct {
	start time.Time
	mu    sync.Mutex
	calls []Call
}

// NewHistory begins a history.
func NewHistory() *History { return &History{start: time.Now()} }

// Now is the time since the start.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Add adds a call that has ended, or never will.
func (h *History) Add(c Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// Calls are those so far.
func (h *History) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// never is the end of a call that may be carried out at any time.
const never = math.MaxInt64

// operation is a call as the checker wants it.
func operation(c Call, input any) porcupine.Operation {
	o := porcupine.Operation{ClientId: c.Client, Input: input, Call: int64(c.Begins), Return: int64(c.Ends)}
	if c.Outcome == Unknown {
		o.Return = never
	}
	return o
}

// definitionNow is a state of the definition.
type definitionNow struct {
	revision int64
	text     string
}

// definitionModel is one register, from which all read what was written last, and which changes for those who know what
// it is (S83).
func definitionModel(first definitionNow) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			now, c := state.(definitionNow), input.(Call)
			d := c.Definition
			switch {
			case !d.Write:
				return now == definitionNow{d.Revision, d.Text}, now
			case c.Outcome == Refused:
				return now.revision != d.On, now
			}
			return now.revision == d.On && d.Revision > now.revision, definitionNow{d.Revision, d.Text}
		},
		DescribeOperation: func(input, _ any) string {
			c := input.(Call)
			if !c.Definition.Write {
				return fmt.Sprintf("read %d", c.Definition.Revision)
			}
			return fmt.Sprintf("change %d to %d: %s", c.Definition.On, c.Definition.Revision, c.Outcome)
		},
	}
}

// CheckDefinition says what is wrong with the calls about the definition: nil if they can be put into an order in which
// each has its effect at one instant between its begin and its end.
func CheckDefinition(calls []Call, first DefinitionCall, patience time.Duration) error {
	made, err := revisions(calls, first)
	if err != nil {
		return err
	}
	seen := firstRead(calls)
	var operations []porcupine.Operation
	for _, c := range calls {
		if c.Definition == nil {
			continue
		}
		if c.Outcome == Unknown {
			d := *c.Definition
			// Nobody changes what they have not read, and the last state is read at the end: a change that nobody has
			// seen was not made.
			if d.Revision = made[d.Text]; !d.Write || d.Revision == 0 {
				continue
			}
			c.Definition = &d
			if end, ok := seen[d.Text]; ok {
				c.Ends, c.Outcome = end, Done
			}
		}
		operations = append(operations, operation(c, c))
	}
	return check(definitionModel(definitionNow{first.Revision, first.Text}), operations, patience)
}

// firstRead is the earliest end of a read, by what was read: who made that had made it by then.
func firstRead(calls []Call) map[string]time.Duration {
	ends := map[string]time.Duration{}
	for _, c := range calls {
		if c.Definition == nil || c.Definition.Write || c.Outcome != Done {
			continue
		}
		if end, ok := ends[c.Definition.Text]; !ok || c.Ends < end {
			ends[c.Definition.Text] = c.Ends
		}
	}
	return ends
}

// revisions are those of the texts, as far as they were seen.
func revisions(calls []Call, first DefinitionCall) (map[string]int64, error) {
	made := map[string]int64{first.Text: first.Revision}
	for _, c := range calls {
		d := c.Definition
		if d == nil || c.Outcome != Done {
			continue
		}
		if was := made[d.Text]; was != 0 && was != d.Revision {
			return nil, fmt.Errorf("one definition has revision %d and revision %d:\n%s", was, d.Revision, d.Text)
		}
		made[d.Text] = d.Revision
	}
	return made, nil
}

// check asks the checker.
func check(model porcupine.Model, operations []porcupine.Operation, patience time.Duration) error {
	result, info := porcupine.CheckOperationsVerbose(model, operations, patience)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%d calls could not be checked within %v", len(operations), patience)
	}
	return fmt.Errorf("%d calls are not linearizable; %s", len(operations), stuck(model, operations, info))
}

// stuck names the calls that could not be put in order after the longest order that was found.
func stuck(model porcupine.Model, operations []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []int
	for _, order := range slices.Concat(info.PartialLinearizations()...) {
		if len(order) > len(longest) {
			longest = order
		}
	}
	text := fmt.Sprintf("%d of them are in order, up to", len(longest))
	for _, i := range longest[max(0, len(longest)-5):] {
		text += "\n  " + line(model, operations[i])
	}
	left := 0
	text += "\nand then none of"
	for i, o := range operations {
		if !slices.Contains(longest, i) && left < 10 {
			text += "\n  " + line(model, o)
			left++
		}
	}
	return text
}

func line(model porcupine.Model, o porcupine.Operation) string {
	end := "never"
	if o.Return != never {
		end = time.Duration(o.Return).Round(time.Microsecond).String()
	}
	return fmt.Sprintf("client %d, %v to %s: %s", o.ClientId, time.Duration(o.Call).Round(time.Microsecond), end,
		model.DescribeOperation(o.Input, o.Output))
}
