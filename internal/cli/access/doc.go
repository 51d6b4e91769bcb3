// Package access has the commands about who may do what: roles, tokens, groups, the audit log, the certificate
// authority, and contexts with signing in and out.
//
//layout:floor=verbs
package access
