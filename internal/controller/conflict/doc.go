// Package conflict holds the rules by which an adapter of a VM that hosts report as running on several of them is
// called a conflict, and by which that ends.
//
// Where an adapter is follows from generations and from nothing else (S100): whoever begins to serve a guest raises the
// generation of its port above all that it knows. Reports are older than what is, so that two hosts may report one
// guest for a moment. Neither is called a conflict before both have looked at their ports anew, after their controllers
// had heard of the other.
//
// A conflict ends by what somebody knows, and never because somebody knows nothing: a controller that has just started,
// or is away, has not heard from the hosts (S78).
//
//layout:floor=process pure
package conflict
