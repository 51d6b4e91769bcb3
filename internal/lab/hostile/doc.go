// Package hostile is the experiment "hostile-neighbour": one VM floods while two others exchange traffic, and the
// effect on these is compared with that of a neighbour that sends as much but does nothing wrong.
//
//layout:floor=workshop
package hostile
