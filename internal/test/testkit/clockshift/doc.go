// Package clockshift starts a program for which the clock on the wall shows another time than for everybody else. It is
// the real program, and knows nothing of it: in its copy of the kernel's page by which programs read the clock (vDSO),
// a few instructions ask the kernel and add how far the clock is off. The kernel has no namespace for that clock, and
// libraries that are loaded before others do nothing to a program that is linked statically.
//
//layout:floor=top
package clockshift
