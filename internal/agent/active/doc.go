// Package active is the value in which the agent's core says what is active on a host: it is made anew with each
// reconcile, and is never changed afterwards, so that every part can read it without asking whose state it is.
//
//layout:floor=process
package active
