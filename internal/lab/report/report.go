package report

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Report is the outcome of one benchmark or experiment.
type Report struct {
	Name string `json:"name"`
	// Title says in a few words what it is about; may be empty.
	Title       string      `json:"title,omitempty"`
	Environment Environment `json:"environment"`
	Rows        []Row       `json:"rows"`
	Budgets     []Budget    `json:"budgets"`
	// Simulated: the numbers were calculated by the model, and not measured.
	Simulated bool `json:"simulated,omitempty"`
	// Conclusions are sentences for people that say what the numbers show.
	Conclusions []string `json:"conclusions,omitempty"`
	// Notes are sentences for people: how it was measured, what was left out and why.
	Notes []string `json:"notes,omitempty"`
	// Plots are the pictures that show the rows best; nil: see Drawn.
	Plots []Plot `json:"-"`
	// Labs are pictures of what it was measured in, Timelines of what came when.
	Labs      []Picture  `json:"-"`
	Timelines []Timeline `json:"-"`
	// Matrices are numbers from each thing to each other one.
	Matrices []Matrix `json:"-"`
	// Explained is the page of the documentation that explains the subject: "explanation/failover.md".
	Explained string `json:"-"`
}

// Picture is a drawing with its title. SVG is markup: its author escapes the texts in it.
type Picture struct{ Title, SVG string }

// Timeline says when packets arrived and when not, in seconds from an event at 0.
type Timeline struct {
	Title, Event string
	From, To     float64
	Lanes        []Lane
}

// Lane is one receiver: packets were awaited from Start to End, and its longest silence lasted from From to To.
type Lane struct {
	Label                string
	Start, From, To, End float64
}

// Row is one line of a report: named values in the order they are shown.
type Row []Field

// Field is one value of a row.
type Field struct {
	// Name is the key in JSON and, unless Title is set, the column's heading.
	Name  string
	Title string
	// Value is a string, bool, integer, float64, Spread, or nil for "not measured". NaN and infinities and a Spread
	// without rounds are shown as not measured too.
	Value any
	// Unit says how the value is formatted for people; programs get base units (bits per second, seconds), which the
	// key names.
	Unit Unit
	// Brief shows only the median of a Spread in the table.
	Brief bool
	// Hidden leaves the field out of the table, TableOnly out of the output for programs.
	Hidden, TableOnly bool
}

// Get returns the value of the named field, nil if there is none.
func (r Row) Get(name string) any {
	for _, f := range r {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// Bound says on which side of a budget the value must lie.
type Bound string

// The bounds. A value equal to the budget meets it.
const (
	AtLeast Bound = ">="
	AtMost  Bound = "<="
	// Exactly is for counts that must be exact; a deviation of a thousandth is a miss.
	Exactly Bound = "="
)

// Budget is a promise and whether the run kept it.
type Budget struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   Unit    `json:"unit"`
	Bound  Bound   `json:"bound"`
	Budget float64 `json:"budget"`
	Met    bool    `json:"met"`
	// Unmeasured says that there is no value: what was waited for never came. Value is 0 then.
	Unmeasured bool `json:"unmeasured,omitempty"`
	// Resolution is the standard error of the value, in its unit; 0 where it is exact or not known.
	Resolution float64 `json:"resolution,omitempty"`
	// Unresolved says that the value lies so close to the budget, or is known so badly, that Met may be chance.
	Unresolved bool `json:"unresolved,omitempty"`
}

// resolvedAt is how many standard errors a value must be away from its budget: by chance one of twenty values is that
// far off.
const resolvedAt = 2

// Resolve sets how well the value is known, by its standard error; NaN if that is unknown.
func (b Budget) Resolve(standardError float64) Budget {
	if math.IsNaN(standardError) || math.IsInf(standardError, 0) {
		b.Unresolved = true
		return b
	}
	b.Resolution = standardError
	b.Unresolved = math.Abs(b.Value-b.Budget) < resolvedAt*standardError
	return b
}

// Verdict returns the result of the budget in one to three words.
func (b Budget) Verdict() string {
	v := "yes"
	if !b.Met {
		v = "NO"
	}
	switch {
	case b.Unresolved && b.Resolution == 0:
		return v + ", not resolved"
	case b.Unresolved:
		return fmt.Sprintf("%s, not resolved (± %s)", v, b.Unit.Format(b.Resolution))
	}
	return v
}

// Hold compares a measured value with its budget. NaN never meets a budget, and is reported as 0 since JSON has no NaN.
func Hold(name string, value float64, unit Unit, bound Bound, budget float64) Budget {
	b := Budget{Name: name, Value: value, Unit: unit, Bound: bound, Budget: budget}
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		b.Value, b.Unmeasured = 0, true
	case bound == AtLeast:
		b.Met = value >= budget
	case bound == AtMost:
		b.Met = value <= budget
	case bound == Exactly:
		b.Met = math.Abs(value-budget) < 1e-3
	}
	return b
}

// Shown is the measured value as tables have it.
func (b Budget) Shown() string {
	if b.Unmeasured {
		return "never"
	}
	return b.Unit.Format(b.Value)
}

// ErrBudget is wrapped by the error of Check.
var ErrBudget = errors.New("budget not met")

// Check returns an error that names every budget that the run did not meet, nil if all are met.
func (r *Report) Check() error {
	var missed []string
	for _, b := range r.Budgets {
		if !b.Met {
			text := fmt.Sprintf("%s is %s, wanted %s %s", b.Name, b.Shown(), b.Bound, b.Unit.Format(b.Budget))
			if b.Unresolved {
				text += " (not resolved)"
			}
			missed = append(missed, text)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w: %s", r.Name, ErrBudget, strings.Join(missed, "; "))
}
