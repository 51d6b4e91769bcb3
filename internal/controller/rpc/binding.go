package rpc

import (
	"fmt"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/part"
	"heddle/internal/controller/staticports"
)

// nic is an adapter of a VM.
type nic = part.Adapter

// boundAsSeen refuses a port whose binding is another than the caller has seen; "" stands for any. The caller holds the
// lock.
func (f portKeeper) boundAsSeen(n nic, b *staticports.Binding, seen string) error {
	if seen == "" || b.Seen() == seen {
		return nil
	}
	is := "it has no static port now"
	if b != nil {
		is = fmt.Sprintf("static port %s is its port now, bound on host %s (binding %s)", b.ID,
			f.nameAt(b.Host), b.Seen())
	}
	return connect.NewError(connect.CodeAborted, fmt.Sprintf("adapter %s of VM %s is not bound by %s any more: %s; "+
		"see heddle port static list, and settle it by that if it is still meant", n.Name, n.VM, seen, is))
}

// nameAt is the name of the host with an id; the id itself for one that was removed. The caller holds the lock.
func (f portKeeper) nameAt(id string) string {
	if h := f.hosts[id]; h != nil {
		return h.doc.Name
	}
	return id
}
