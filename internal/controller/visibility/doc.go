// Package visibility is what of the definition somebody may see and change who has been granted a part of the cluster.
// It is pure.
//
//layout:floor=process pure
package visibility
