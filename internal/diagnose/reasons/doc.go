// Package reasons describes in an operator's words what the dataplane's reasons mean: which policy causes each and how
// to change it. It is pure data in addition to internal/abi; the reference page and the commands that explain a drop
// use it.
//
//layout:floor=answers pure
package reasons
