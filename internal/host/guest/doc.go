// Package guest follows how guests configure their adapters: it watches the QEMU monitors behind taps, of which the
// host itself sees nothing.
//
//layout:floor=kinds
package guest
