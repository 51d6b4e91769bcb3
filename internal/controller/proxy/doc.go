// Package proxy reads calls that a controller passes on to a host, as far as it has to know what they are about. It
// is pure.
//
//layout:floor=process pure
package proxy
