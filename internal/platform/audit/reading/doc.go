// Package reading lists and checks the audit logs of all controllers: each has the log of what it answered.
//
//layout:floor=platform
package reading
