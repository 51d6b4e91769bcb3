// Package report is the common form of every number that Heddle publishes: where it was measured, rows with their
// spread, and the budgets against which they are checked; as a table for people and as JSON or YAML for programs.
//
//layout:floor=workshop pure
package report
