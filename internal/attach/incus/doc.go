// Package incus connects the adapters of Incus's containers and VMs to Heddle's port groups. Incus runs no hook when an
// instance starts; so its API is asked whenever devices of the host come or go.
//
//layout:floor=process
package incus
