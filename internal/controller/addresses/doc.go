// Package addresses keeps which addresses of pools the hosts' ports have.
//
// A host's addresses are in an object of its own, written in the transaction by which the host joins or the definition
// changes. All such transactions write one object besides, the book: of two that are made at the same time, on
// whichever controllers, the second is refused and made anew. So no address is given twice.
//
//layout:floor=process
package addresses
