// Package refusals keeps which frames of their guests the policies of ports refused, and whether that is past.
//
//layout:floor=process
package refusals
