// Package libvirt reads what a domain's XML says about Heddle: which port group each of its adapters belongs to. This
// is either in an element of Heddle's own inside <metadata>, which libvirt stores and passes to its hooks, or in
// libvirt's own portgroup= if the adapter is on a network that stands for a switch.
//
//layout:floor=process
package libvirt
