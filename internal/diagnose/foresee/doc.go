// Package foresee says what a change would newly drop of what ports really sent: it makes one frame for each sender
// that a host knows from flows, learned MACs and counters, and hands it to the model under the plan of now and under
// the plan after the change. Pure.
//
// What it can't see: the rate limits of storm control, which single frames don't reach, and frames that come from the
// physical network.
//
//layout:floor=kernel pure
package foresee
