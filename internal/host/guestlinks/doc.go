// Package guestlinks follows which adapters of libvirt's domains have their link set down (virsh domif-setlink).
// libvirt calls no hook for that and sends no event, and the adapter's tap stays up. But it writes the status of each
// domain that runs to a file, and that file is followed.
//
//layout:floor=kinds
package guestlinks
