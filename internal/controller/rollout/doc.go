// Package rollout is how a change of the definition goes to hosts in stages (S102): which host is in which stage, what
// is compared between the stages, and what the next step is. It reaches nothing: who drives a rollout keeps it where
// the definition is kept.
//
//layout:floor=process pure
package rollout
