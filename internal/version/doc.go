// Package version says which build of Heddle a program is.
//
//layout:floor=words pure
package version
