// Package accounts checks whether a port's counters add up: every frame received from it was delivered or dropped with
// one reason (S94). For an idle port the check is exact; for a busy one it calculates how many frames under way the
// difference allows for. Pure.
//
//layout:floor=kinds pure
package accounts
