package adopt

import (
	"time"

	"heddle/internal/observe/undone"
)

// Times of a change that came from a controller.
const (
	// ControllersWithin is for how long after such a change the host goes back where it has lost all controllers.
	ControllersWithin = 30 * time.Second
	// controllersSilence is how long no controller may have answered at the end of that time.
	controllersSilence = 10 * time.Second
	// mostResumed is how often an agent that has started again waits for controllers. One that does not get so far as
	// to ask them is no better than a host that is cut off.
	mostResumed = 3
)

// judgeControllers decides about a change that stays where some controller answers.
func (c *Change) judgeControllers(now time.Duration) (Verdict, undone.Reason) {
	end := c.MadeAt + c.Within
	switch {
	case now < end:
		return Wait, undone.Reason{}
	case c.Answered >= end-controllersSilence && c.Answered >= c.MadeAt:
		return Keep, undone.Reason{}
	}
	return Revert, undone.Reason{Code: undone.ControllersSilent, Within: c.Within.Round(time.Second)}
}

// Resume takes up a change that came from a controller, in an agent that has started again at the instant now: what
// was heard before does not count, and the controllers have some time to answer. In another boot that is the whole
// time. It is false, with a reason, for a change that is not waited for again.
func (c *Change) Resume(now time.Duration, here string) (undone.Reason, bool) {
	c.Answered = 0
	if c.Resumed++; c.Resumed > mostResumed {
		return undone.Reason{Code: undone.Interrupted}, false
	}
	if c.Place != here { // its network configuration puts addresses where they belong
		c.Place, c.MadeAt, c.Within, c.Interfaces = here, now, ControllersWithin, nil
	}
	c.Within = max(c.Within, now+controllersSilence-c.MadeAt)
	return undone.Reason{}, true
}
