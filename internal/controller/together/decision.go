package together

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Bounds of the time between the decision and the instant.
const (
	LeastLead = time.Second
	MostLead  = time.Minute
)

// Decision is what was decided, as it is kept: it counts from the transaction on that has the change.
type Decision struct {
	ID string `json:"id"`
	// At is the instant by the clock of each controller, in nanoseconds. A controller is named by its start, with which
	// its clock begins.
	At map[string]int64 `json:"at"`
	// Wall is the instant by the clock on the wall of who decided, for people, and for a controller that At lacks.
	Wall time.Time `json:"wall"`
	// Hosts is how many were ready.
	Hosts int `json:"hosts"`
}

// Instant is when hosts change, by the clock of the controller of that start, which shows now; wall is what its clock
// on the wall shows. One that was not asked goes by that clock, and never later than the longest lead.
func (d Decision) Instant(start string, now int64, wall time.Time) int64 {
	if at, ok := d.At[start]; ok {
		return at
	}
	return now + int64(max(0, min(d.Wall.Sub(wall), MostLead)))
}

// Counts are those of the changes that a controller was asked for since its start.
type Counts struct {
	// Made is how many were decided, Refused how many were not, since a host could not or was away.
	Made, Refused int64
	// Late is how many hosts changed after the instant though they had been ready.
	Late int64
	// Spread is the time between the first and the last host at the newest change of more than one.
	Spread time.Duration
}

// Late is a host that did not change at the instant.
type Late struct{ Host, Why string }

// tolerance is how late a host may be, beside what is not known of its clock.
const tolerance = 5 * time.Millisecond

// Told is what is known of hosts that were to change at an instant.
type Told struct {
	// Off is by how much after the instant each changed, in nanoseconds.
	Off map[string]int64
	// Missing says why a host has not changed yet, Unsure why it is not known whether it has changed at the instant.
	// Hosts that are in none of the three took the change without the instant.
	Missing, Unsure map[string]string
}

// Outcome says what became of a decision. announced is by how much what is known of the hosts' clocks may be wrong.
func Outcome(hosts, others []string, told Told, announced time.Duration) (late []Late, spread time.Duration) {
	var first, last int64
	some := false
	for _, name := range hosts {
		by, said := told.Off[name]
		switch {
		case told.Unsure[name] != "":
		case told.Missing[name] != "":
			late = append(late, Late{name, told.Missing[name]})
		case !said:
			late = append(late, Late{name, "it lost its connection before the instant, and took the change when it " +
				"was back"})
		case time.Duration(by) > announced+tolerance:
			late = append(late, Late{name, fmt.Sprintf("it changed %s after the instant",
				time.Duration(by).Round(time.Millisecond/10))})
		case !some:
			first, last, some = by, by, true
		default:
			first, last = min(first, by), max(last, by)
		}
	}
	for _, name := range others {
		late = append(late, Late{name, cmp.Or(told.Missing[name], "it was not connected, and takes the change when it "+
			"is back")})
	}
	slices.SortFunc(late, func(a, b Late) int { return cmp.Compare(a.Host, b.Host) })
	return late, time.Duration(last - first)
}
