// Package top is a live view of ports by rate and drops for a terminal. The effect of keys, the content and its order
// are pure; Run connects the view to a terminal, and restores the terminal afterwards.
//
//layout:floor=verbs
package top
