// Package diagnose has the commands that say what is wrong: status, doctor, advise, health.
//
//layout:floor=verbs
package diagnose
