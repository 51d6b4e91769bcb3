// Package vitals reads what hosts have counted, of which a rollout takes its measure.
//
//layout:floor=process
package vitals
