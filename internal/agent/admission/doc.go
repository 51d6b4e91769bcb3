// Package admission decides whether this host can serve a guest that is to arrive as well as the host that it leaves
// (S100): whether it has what the guest needs, a way to the physical network, and room for its MACs and flows. A guest
// that starts here is never refused: it has no better place.
//
//layout:floor=process
package admission
