// Package vsphere translates distributed switches of vSphere into a definition. It is pure: it reads managed objects
// of the vSphere API as JSON, and knows no vCenter. What has no counterpart, or means something else, is noted with
// what to do about it.
//
//layout:floor=plans pure
package vsphere
