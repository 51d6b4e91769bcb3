// Package budget bounds how much work all test programs of a run do at once. The runner serves the budget on a Unix
// socket; a test takes a share before it starts guests, fleets or benches, and gives it back at its end.
//
//layout:floor=top
package budget
