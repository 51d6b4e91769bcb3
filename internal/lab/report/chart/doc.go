// Package chart draws bars and curves as SVG for a page that gives them their colours: every shape has a class and none
// a colour, so that a page is dark or light by its style sheet alone. It is small on purpose: reports are written by
// the program that switches frames, and a plotting library with its fonts would be larger than that program.
//
//layout:floor=workshop pure
package chart
