// Package clitest has what tests of several packages of commands share.
//
//layout:floor=verbs
package clitest
