// Package config has the commands about the configuration file of a host: check, apply, history, differences.
//
//layout:floor=verbs
package config
