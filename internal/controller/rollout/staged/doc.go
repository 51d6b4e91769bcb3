// Package staged is how a change of the definition goes to hosts in stages: which open rollouts the change ends, what
// undoes it, which host is in which stage, and what is written with it. It has the parts of the pipeline that do so.
//
//layout:floor=process
package staged
