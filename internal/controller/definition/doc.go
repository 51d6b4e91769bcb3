// Package definition writes the definition: in one transaction, or in parts that count at one instant; and records it.
//
//layout:floor=process
package definition
