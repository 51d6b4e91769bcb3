// Package idp is an identity provider for tests: the OpenID Connect server that zitadel/oidc has as an example, over
// TLS on the loopback, with groups.
//
//layout:floor=top
package idp
