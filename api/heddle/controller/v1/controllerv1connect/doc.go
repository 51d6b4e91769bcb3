// Package controllerv1connect has the services of the contract with a controller for Connect, generated from the
// schema.
//
//layout:floor=words pure
package controllerv1connect
