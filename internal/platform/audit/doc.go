// Package audit keeps the record of what people and tools changed at a controller, or were refused: entries in order,
// in files that are bounded in size. An entry is on disk before what it is about happens.
//
//layout:floor=platform
package audit
