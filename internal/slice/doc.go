// Package slice is what a controller hands one host of the definition: the switches that the host has, with every port
// group that it may serve, and its own ports. It is a set of objects, each a document in the words of a configuration
// file, with a hash by which the controller and the host see at once that they have the same. It is pure.
//
//layout:floor=plans pure
package slice
