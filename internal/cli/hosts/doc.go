// Package hosts has the commands about hosts of a cluster: join, show, drain, hand over, remove.
//
//layout:floor=verbs
package hosts
