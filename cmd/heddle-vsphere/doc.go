// Heddle-vsphere reads the distributed switches of a running vCenter for heddle import vsphere --vcenter. It is a
// program of its own, because the types of the vSphere API would take room in every agent.
//
//layout:floor=top
package main
