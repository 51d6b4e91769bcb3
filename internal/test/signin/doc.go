// Package signin tests how people sign in, with a real identity provider, a real controller and the command line.
//
//layout:floor=top
package signin
