// Package lookscope is how a controller tells a host which port groups it has judged for somebody whose call it passes
// on.
//
//layout:floor=kinds
package lookscope
