package api

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"heddle/internal/api/wire"
)

// understood returns an error unless the agent knows everything in a request. A command that is newer than its agent
// may request more than the agent knows; if the agent did only the rest, it would not do what was requested.
func understood(m any) error {
	p, ok := m.(proto.Message)
	if !ok {
		return nil
	}
	if what := wire.Unknown(p); what != "" {
		return NewError(Invalid, fmt.Sprintf("this agent does not know %s, which the command asks for: the agent is "+
			"older than the command; restart it with the same program", what))
	}
	return nil
}
