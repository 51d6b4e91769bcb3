// Package difftest compares two implementations of a switch: random plans, facts, frames and changes go through both,
// and every copy, disposition, refusal, learned MAC and counter is compared. An isolation check that knows neither
// examines the same runs. A difference is shrunk and kept as a regression case.
//
//layout:floor=top
package difftest
