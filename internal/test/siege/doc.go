// Package siege has a real controller attacked, by strangers, by tokens that may do little and by a host of the
// cluster, while an admin works with it.
//
//layout:floor=top
package siege
