// Package ownfile stores files for the agent, which runs as root: only in directories of its own, and never through a
// link that somebody else may have put there.
//
//layout:floor=kinds
package ownfile
