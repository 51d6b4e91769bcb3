// Package packaging holds what installs Heddle on a host and connects it to other systems; its tests install it.
//
//layout:floor=top
package packaging
