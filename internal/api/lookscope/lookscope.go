package lookscope

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// Header is the header of a call that a controller passes on for somebody who may look at some port groups alone:
// those that the controller judged, by what it knew of the ports. The host holds the ports against them as they are
// now. A host of the version before does not look at it. From people it is not taken.
const Header = "Heddle-Judged"

// Group is a port group that a controller judged.
type Group struct {
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
}

// Text is the header's value.
func Text(groups []Group) (string, error) {
	text, err := json.Marshal(groups)
	return url.QueryEscape(string(text)), err
}

// key is that of contexts of calls that came with port groups.
type key struct{}

// Read returns the context of a call with that header; "" is none.
func Read(ctx context.Context, header string) (context.Context, error) {
	if header == "" {
		return ctx, nil
	}
	var groups []Group
	text, err := url.QueryUnescape(header)
	if err == nil {
		err = json.Unmarshal([]byte(text), &groups)
	}
	if err != nil {
		return nil, fmt.Errorf("the header %s can't be read: %w", Header, err)
	}
	return With(ctx, groups), nil
}

// With returns the context of a call that is about these port groups alone.
func With(ctx context.Context, groups []Group) context.Context {
	return context.WithValue(ctx, key{}, groups)
}

// Of are the port groups that a call is about, by the controller that passed it on; some is false where it may be
// about any.
func Of(ctx context.Context) (groups []Group, some bool) {
	groups, some = ctx.Value(key{}).([]Group)
	return groups, some
}
