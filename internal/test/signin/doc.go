// Package signin signs people in to a real controller by a real identity provider, as a browser does.
//
//layout:floor=top
package signin
