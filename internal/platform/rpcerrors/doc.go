// Package rpcerrors says how the store's errors, and those about who calls, are told to callers.
//
//layout:floor=platform
package rpcerrors
