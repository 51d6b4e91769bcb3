// Package spec is what the user asks for: the objects of a Heddle configuration file, read strictly, validated with
// the line of every fault, and inherited switch → port group → port, field by field (S8, D3). It never uses the
// kernel.
//
//layout:floor=words pure
package spec
