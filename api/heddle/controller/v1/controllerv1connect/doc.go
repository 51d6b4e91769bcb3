// Package controllerv1connect has the services of the contract with a controller for Connect, generated from the
// schema.
package controllerv1connect
