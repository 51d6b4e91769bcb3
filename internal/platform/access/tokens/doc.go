// Package tokens makes, lists and withdraws the tokens of people and tools, and says who a caller is and by what
// callers know the controllers.
//
//layout:floor=platform
package tokens
