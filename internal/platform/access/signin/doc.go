// Package signin knows people by the ID tokens that an OpenID Connect provider gives them (OpenID Connect Core 1.0).
//
//layout:floor=platform
package signin
