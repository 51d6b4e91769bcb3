package proxy

import (
	"fmt"
	"net/http"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api/lookscope"
	"heddle/internal/platform/access/roles"
)

// Begin is how a call begins at the host to which it is passed on: with those of the headers that it has. Only another
// controller says what was judged.
func Begin(r *http.Request, procedure string, body []byte, headers []string,
	byController bool) *controllerv1.HostCallBegin {
	begin := &controllerv1.HostCallBegin{Procedure: procedure, Headers: map[string]string{}, Body: body}
	if byController {
		headers = append(headers, lookscope.Header)
	}
	for _, name := range headers {
		if v := r.Header.Get(name); v != "" {
			begin.Headers[name] = v
		}
	}
	return begin
}

// mostJudged bounds what the host is told of port groups, in bytes: it goes as a header, also from one controller to
// another.
const mostJudged = 8 << 10

// Judge tells the host which port groups the caller may look at, as far as they are not all: a port may be in another
// one by now than the host has reported.
func Judge(begin *controllerv1.HostCallBegin, parts []roles.Scope) error {
	if len(parts) == 0 {
		return nil
	}
	var groups []lookscope.Group
	for _, p := range parts {
		groups = append(groups, lookscope.Group{Switch: p.Switch, PortGroup: p.PortGroup})
	}
	text, err := lookscope.Text(groups)
	if err != nil {
		return err
	}
	if len(text) > mostJudged {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("the ports are in %d port groups, too many "+
			"for one call: ask about some of them at a time", len(parts)))
	}
	begin.Headers[lookscope.Header] = text
	return nil
}
