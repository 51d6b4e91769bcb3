// Package cputime reads how much CPU time the machine and single processes have used.
//
//layout:floor=workshop
package cputime
