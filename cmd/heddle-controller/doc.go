// Heddle-controller keeps the definition of distributed switches for many hosts, and hands each host its part.
//
//layout:floor=top
package main
