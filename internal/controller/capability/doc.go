// Package capability is how a program gives its controllers a capability: a folder of internal/feature, which the core
// does not know. The program's list names it with its calls, its kinds of objects and the function that makes its part;
// what it needs of the controller it is handed as values and functions.
//
//layout:floor=process
package capability
