package rpc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/store"
)

// noBinding is what stands for the binding of an adapter that has no static port.
const noBinding = "none"

// bindingDigits is how many hexadecimal digits tell one binding from another.
const bindingDigits = 16

// bindingOf tells a port's binding from every other one: which host has the port, and by which of its claims, or since
// which of its guest's moves.
func bindingOf(port string, b *store.Binding) string {
	text, err := json.Marshal(struct {
		Port, Host string
		Generation uint64
		Claim      store.Claim
	}{port, b.Host, b.Generation, b.Claim})
	if err != nil { // never: all of it is plain data
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:bindingDigits]
}

// binding is that of a bound port, nil for an adapter without one.
func (b *bound) binding() string {
	if b == nil {
		return noBinding
	}
	return bindingOf(b.id, b.was())
}

// boundAsSeen refuses a port whose binding is another than the caller has seen; "" stands for any. The caller holds the
// lock.
func (f portKeeper) boundAsSeen(n nic, b *bound, seen string) error {
	if seen == "" || b.binding() == seen {
		return nil
	}
	is := "it has no static port now"
	if b != nil {
		is = fmt.Sprintf("static port %s is its port now, bound on host %s (binding %s)", b.id,
			f.nameAt(b.host), b.binding())
	}
	return connect.NewError(connect.CodeAborted, fmt.Sprintf("adapter %s of VM %s is not bound by %s any more: %s; "+
		"see heddle port static list, and settle it by that if it is still meant", n.adapter, n.vm, seen, is))
}

// nameAt is the name of the host with an id; the id itself for one that was removed. The caller holds the lock.
func (f portKeeper) nameAt(id string) string {
	if h := f.hosts[id]; h != nil {
		return h.doc.Name
	}
	return id
}
