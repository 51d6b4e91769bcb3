// Package sessions is how people get tokens at a controller by signing in, and give them back.
//
//layout:floor=platform
package sessions
