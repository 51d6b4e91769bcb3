// Package changes lists in the user's words how one configuration, or one plan, differs from another.
//
//layout:floor=process
package changes
