// Package impact joins what single hosts say that a change would newly lose into one answer of bounded size. Pure.
//
//layout:floor=process pure
package impact
