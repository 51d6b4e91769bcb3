// Package alike finds out what things have in common that others do not: what slow pairs of hosts share.
//
//layout:floor=kinds pure
package alike
