// Package granting is how people grant roles to one another at a controller, and ask who may do what.
//
//layout:floor=platform
package granting
