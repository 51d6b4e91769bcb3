// Package definition has the controllers' definition as this host follows it: the version that was handed over last,
// read as a configuration, the port groups of earlier versions that the host keeps since its ports use them, and what
// is set for static ports.
//
//layout:floor=process
package definition
