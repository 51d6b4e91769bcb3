// Package flows has "heddle flows": what is metered now, sums of it, and its export.
//
//layout:floor=verbs
package flows
