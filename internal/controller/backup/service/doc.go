// Package service answers people about backups: it makes one of what the cluster defines, compares the cluster with
// one, and brings one in.
//
//layout:floor=process
package service
