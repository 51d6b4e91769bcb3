// Package diagnose has the commands that say what is wrong: status, doctor, advise.
//
//layout:floor=verbs
package diagnose
