// Package history is the form of the definition's history: what is recorded of each change, how an earlier definition
// is made of the records, and which records have had their time. It reaches nothing.
//
// A record has the change as it was made. Every Stretch changes, and where the definition had been changed without a
// record, it also has the whole definition before the change: an earlier definition is made of the nearest of these and
// the changes since.
//
//layout:floor=process pure
package history
