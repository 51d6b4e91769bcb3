// Package controller runs a controller: the store, the cluster's authority, and what answers agents and people.
//
//layout:floor=process
package controller
