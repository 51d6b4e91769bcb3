// Package features lists the features that the heddle-controller program has: a feature is added to it here.
//
//layout:floor=verbs
package features
