// Package diagnose defines the types of explanations: the question and the answer of a trace, and what to change. Its
// sub-packages find the answers. It is pure.
//
//layout:floor=kinds pure
package diagnose
