// Package recent says how many frames each port has sent lately: the kernel counts since a port got its slot, and who
// plans a change wants to know what is sent now. It is given the counters from time to time. Pure.
//
//layout:floor=kinds pure
package recent
