package undone

import (
	"fmt"
	"strings"
	"time"
)

// Code names a reason. "" is none: it does not go back.
type Code string

// The reasons.
const (
	Restarted         Code = "restarted"          // the machine has started again: Detail
	Interrupted       Code = "interrupted"        // the agent ended while it was being made
	Failed            Code = "failed"             // a step of it failed: Detail
	NotConfirmed      Code = "not-confirmed"      // by the operator, Within
	NobodyToAsk       Code = "nobody-to-ask"      // and no time to confirm was given: it is refused
	GatewaySilent     Code = "gateway-silent"     // Who did not answer Within
	WitnessesSilent   Code = "witnesses-silent"   // Who answered before, and not any more Within
	WitnessesUnsteady Code = "witnesses-unsteady" // those who answered before answered only sometimes
	Released          Code = "released"           // the operator wants it
	ReleaseUnanswered Code = "release-unanswered" // Who did not answer by Device Within, so that it stays
	ReleaseFailed     Code = "release-failed"     // the same, and it could not go to Port again: Detail
	ControllersSilent Code = "controllers-silent" // none of the host's cluster answered any more Within
)

// Reason is why something goes back; which fields belong to a code, the codes say. The zero value is none.
type Reason struct {
	Code   Code          `json:"code"`
	Who    []string      `json:"who,omitempty"`
	Device string        `json:"device,omitempty"`
	Port   string        `json:"port,omitempty"`
	Within time.Duration `json:"within,omitempty"`
	// Detail is what somebody else says, such as the kernel, or words for people alone. It decides nothing.
	Detail string `json:"detail,omitempty"`
	// Left is what could not go back, in the words of the error.
	Left string `json:"left,omitempty"`
}

// Of is a reason to which nothing else belongs.
func Of(c Code) Reason { return Reason{Code: c} }

// None says that nothing goes back.
func (r Reason) None() bool { return r.Code == "" }

// Text says the reason to people, "" for none. A code that is not known here is its own text.
func (r Reason) Text() string {
	text := r.what()
	if r.Left != "" {
		text += "; not all went back: " + r.Left
	}
	return text
}

func (r Reason) what() string {
	who := strings.Join(r.Who, ", ")
	switch r.Code {
	case Restarted:
		return "the machine has started again" + after(r.Detail)
	case Interrupted:
		return "the agent ended during the move"
	case Failed:
		if r.Detail != "" {
			return r.Detail
		}
		return "a step of it failed"
	case NotConfirmed:
		return fmt.Sprintf("it was not confirmed within %s", r.Within)
	case NobodyToAsk:
		if r.Detail != "" {
			return r.Detail
		}
		return "nobody can be asked whether this host is still reached"
	case GatewaySilent:
		return fmt.Sprintf("gateway %s did not answer within %s", who, r.Within)
	case WitnessesSilent:
		return fmt.Sprintf("%s answered before, and not any more within %s", who, r.Within)
	case WitnessesUnsteady:
		return fmt.Sprintf("those who answered before did not go on answering within %s", r.Within)
	case ControllersSilent:
		return fmt.Sprintf("no controller answered any more within %s", r.Within)
	case Released:
		return "it was released"
	case ReleaseUnanswered:
		return fmt.Sprintf("gateway %s did not answer by device %s within %s", who, r.Device, r.Within)
	case ReleaseFailed:
		again := r
		again.Code = ReleaseUnanswered
		return fmt.Sprintf("it was released; %s, and it could not go to %s again%s", again.what(), r.Port,
			after(r.Detail))
	}
	return string(r.Code)
}

// after is ": DETAIL" where there is one.
func after(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}
