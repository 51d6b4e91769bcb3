// Package seed makes a history of changes in the database of a controller that does not run, with the code and in
// the form of a controller, for measurements: a call for each of 100,000 changes would take half an hour. etcd does not
// run meanwhile, since on a busy machine each of its transactions waits for a dozen goroutines.
//
//layout:floor=process
package seed
