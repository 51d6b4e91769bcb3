package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// JudgedHeader is the header of a call that a controller passes on for somebody who may look at some port groups alone:
// those that the controller judged, by what it knew of the ports. The host holds the ports against them as they are
// now. A host of the version before does not look at it. From people it is not taken.
const JudgedHeader = "Heddle-Judged"

// JudgedGroup is a port group that a controller judged.
type JudgedGroup struct {
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
}

// JudgedText is the header's value.
func JudgedText(groups []JudgedGroup) (string, error) {
	text, err := json.Marshal(groups)
	return url.QueryEscape(string(text)), err
}

// judged is the key of contexts of calls that came with port groups.
type judged struct{}

// withJudged returns the context of a call with that header; "" is none.
func withJudged(ctx context.Context, header string) (context.Context, error) {
	if header == "" {
		return ctx, nil
	}
	var groups []JudgedGroup
	text, err := url.QueryUnescape(header)
	if err == nil {
		err = json.Unmarshal([]byte(text), &groups)
	}
	if err != nil {
		return nil, fmt.Errorf("the header %s can't be read: %w", JudgedHeader, err)
	}
	return WithJudged(ctx, groups), nil
}

// WithJudged returns the context of a call that is about these port groups alone.
func WithJudged(ctx context.Context, groups []JudgedGroup) context.Context {
	return context.WithValue(ctx, judged{}, groups)
}

// Judged are the port groups that a call is about, by the controller that passed it on; some is false where it may be
// about any.
func Judged(ctx context.Context) (groups []JudgedGroup, some bool) {
	groups, some = ctx.Value(judged{}).([]JudgedGroup)
	return groups, some
}
