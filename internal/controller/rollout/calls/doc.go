// Package calls answers people about changes in stages.
//
//layout:floor=process
package calls
