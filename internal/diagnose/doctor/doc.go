// Package doctor examines a host for faults that keep a switch from working, or from working well, and says what to do
// about them. Facts are gathered once; each check is a pure function of them.
//
//layout:floor=workshop
package doctor
