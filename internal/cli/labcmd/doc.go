// Package labcmd has "heddle lab": labs of namespaces and guests, and experiments in them.
//
//layout:floor=verbs
package labcmd
