// Package definition has the commands about the definition of all hosts: apply, history, roll-outs, backup, import and
// export.
//
//layout:floor=verbs
package definition
