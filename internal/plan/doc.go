// Package plan resolves a configuration into the desired state of a host: for every port its effective policy, field
// by field with the level it came from, in the user's words. A Plan is a pure value. Package model interprets it;
// package dataplane compiles it into kernel tables; neither sees the other's form of it.
//
//layout:floor=plans pure
package plan
