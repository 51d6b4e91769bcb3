// Package serve has the TLS listener of a controller: it shakes hands, admits those who have not proved who they are in
// turns and in bounded numbers, and counts whom it refuses.
//
//layout:floor=platform
package serve
