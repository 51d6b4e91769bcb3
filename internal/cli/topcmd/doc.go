// Package topcmd has "heddle top": ports and flows by rate, on a screen that is drawn anew.
//
//layout:floor=verbs
package topcmd
