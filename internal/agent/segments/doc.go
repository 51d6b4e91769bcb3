// Package segments is what a host has and knows of overlay segments: it says to the controllers what is behind its
// ports, takes from them where everything else is, keeps that on disk, and hands it to the kernel as changes. Without
// controllers the host goes on by what it knew last.
//
//layout:floor=process
package segments
