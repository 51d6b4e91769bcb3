package trace

import "heddle/internal/diagnose"

// A trace is asked and answers in the words of package diagnose, which the API and the commands speak as well.
type (
	Report     = diagnose.Report
	Frame      = diagnose.Frame
	Step       = diagnose.Step
	CopyKind   = diagnose.CopyKind
	Copy       = diagnose.Copy
	Cause      = diagnose.Cause
	Edit       = diagnose.Edit
	EditObject = diagnose.EditObject
	Talk       = diagnose.Talk
	Verdict    = diagnose.Verdict
	Protocol   = diagnose.Protocol
	Hop        = diagnose.Hop
	Request    = diagnose.Request
	Fields     = diagnose.Fields
	Addresses  = diagnose.Addresses
	Ports      = diagnose.Ports
)

// Their values.
const (
	ToPort     = diagnose.ToPort
	ToUplink   = diagnose.ToUplink
	ToHost     = diagnose.ToHost
	EditSwitch = diagnose.EditSwitch
	EditGroup  = diagnose.EditGroup
	EditUplink = diagnose.EditUplink
	EditPort   = diagnose.EditPort
	Yes        = diagnose.Yes
	No         = diagnose.No
	Unknown    = diagnose.Unknown
	MaxFrames  = diagnose.MaxFrames
	MaxLength  = diagnose.MaxLength
)
