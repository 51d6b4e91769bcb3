// Package undone has the reasons why a change that is tried, or the adoption of a device's addresses, goes back. A
// reason is a code with what belongs to it. Codes decide what the agent does, and are what scripts read; the sentence
// for people is made of them in one place (Text), and may be reworded without changing anything else. It is pure.
//
//layout:floor=kinds pure
package undone
