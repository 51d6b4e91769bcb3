// Package pipeline makes a change of the definition: parse, read, judge, weigh, and then foretell, or write and tell.
//
// It knows the order of the stages and nothing of what the parts of a controller do in them. A part has the hooks that
// it needs, each an interface of its own. All parts stand in one table; within a stage they are called in its order.
// Restoring an earlier definition, importing a backup, taking a rollout back and a dry run are values of a Request.
//
//layout:floor=process
package pipeline
