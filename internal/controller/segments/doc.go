// Package segments is a controller's part in overlay segments: it takes what hosts say of theirs, has other controllers
// told, and hands each host who is where in the segments that it has ports in, and in no others. What it knows is in
// memory alone: hosts say it again when a controller was started anew, and what a host knew of those that have not come
// back yet is taken over from it.
//
//layout:floor=process
package segments
