package api

import "context"

// byController is the key of contexts of calls that came by way of a controller.
type byController struct{}

// ByController returns the context of a call that came by way of a controller: whoever asks is not on this host, and
// knows its devices and ports from reports alone.
func ByController(ctx context.Context) context.Context {
	return context.WithValue(ctx, byController{}, true)
}

// CameByController reports whether a call came by way of a controller.
func CameByController(ctx context.Context) bool { return ctx.Value(byController{}) != nil }
