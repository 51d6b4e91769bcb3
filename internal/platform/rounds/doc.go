// Package rounds has things wait in rounds: one after the other of those to whom they belong has a turn.
//
//layout:floor=platform pure
package rounds
