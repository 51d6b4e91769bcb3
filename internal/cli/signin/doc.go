// Package signin gets ID tokens of an OpenID Connect provider for the person at a program: with a browser (RFC 8252, by
// an authorization code with PKCE, RFC 7636), or by a code that is typed into a browser elsewhere (RFC 8628).
//
//layout:floor=verbs
package signin
