// Command runtests builds the tests of the packages that its arguments name, runs them within one budget of processes,
// and shows what a person wants to know: progress, a line per package with its time and CPU time, the whole output of
// what failed, the reasons for what was skipped, where the CPU time went, once more and in short what failed and why,
// and as its last line "N passed, N failed, N skipped". It exits with 1 when anything failed or nothing was run.
//
// A failed test is repeated once, alone, after the others; one that passes then is unsteady: it is listed, and fails
// the run only where there are more than three or where the kept list has it already. Tests that prove that something
// never happens are not repeated. Tests called TestTime… run alone at the end.
//
//layout:floor=top
package main
