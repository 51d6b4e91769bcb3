// Package past answers about earlier definitions: which changes there were, what one of them was, how two differ, and
// since when hosts differ from what they are to have.
//
//layout:floor=process
package past
