// Package trace has "heddle trace" and "heddle explain": where a frame would go, and why.
//
//layout:floor=verbs
package trace
