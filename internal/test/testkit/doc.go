// Package testkit holds what tests of several rings share: requirements that are skipped visibly when they cannot be
// met, and throw-away namespaces.
//
//layout:floor=top
package testkit
