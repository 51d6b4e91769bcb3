// Package packaging tests the packages: they are built, installed and upgraded in systemd roots.
//
//layout:floor=top
package packaging
