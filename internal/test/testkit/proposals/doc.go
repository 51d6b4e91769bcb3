// Package proposals tries the commands that diagnoses propose, as somebody who copies them from the screen: a shell
// splits them, and the real program runs them.
//
//layout:floor=top
package proposals
