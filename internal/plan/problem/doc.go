// Package problem has the states in which a port or uplink is not in full service. A state is a code with details: the
// device, another port, a number. Codes decide what the product does, and are what scripts read. One function (Text)
// makes the sentence for people from them, so that the sentence may be reworded without any other effect. The package
// is pure.
//
//layout:floor=plans pure
package problem
