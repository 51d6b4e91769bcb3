// Package docgen generates reference pages: from the statements and the tests' names, from the reasons, the roles, the
// metrics, the schema of the agent's API, and the command tree. Its tests fail when a committed page differs from what
// it makes, and when an example in a hand-written page is no valid configuration.
//
//layout:floor=top
package docgen
