// Package health says what of a controller is not as it should be, and what to do.
//
//layout:floor=platform
package health
