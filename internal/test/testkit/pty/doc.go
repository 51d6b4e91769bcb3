// Package pty gives tests a terminal: a pseudo-terminal, and a screen that understands what a full-screen program
// writes.
//
//layout:floor=top
package pty
