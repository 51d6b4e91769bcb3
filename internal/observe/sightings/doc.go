// Package sightings dates what is only counted: the kernel keeps how many frames were dropped and not when. A ledger is
// given the counters every few seconds and keeps when each of them grew first and last. Pure.
//
//layout:floor=kinds pure
package sightings
