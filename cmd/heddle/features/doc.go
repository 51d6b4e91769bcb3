// Package features lists the features that the program heddle has beside its core.
//
//layout:floor=top
package features
