// Package teams decides which uplink every port uses: the teams under the present facts, which ports move and why, and
// what is announced about it.
//
//layout:floor=network pure
package teams
