// Package together is how hosts make a change at one instant, or none of them does (S101): who is asked and who is
// ready, when the instant is, what the clock of each host shows then, and who was late. It reads no store
// and reaches no network: package rpc carries the questions and the answers.
//
//layout:floor=process pure
package together
