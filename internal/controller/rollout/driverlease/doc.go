// Package driverlease is how one controller of several drives all rollouts: by an object that it writes anew all the
// time. Another one takes it when it has seen no new version of it for a while by its own clock. The lease saves work,
// no more: two drivers do no harm, since each replaces a rollout only as it has read it.
//
//layout:floor=process
package driverlease
