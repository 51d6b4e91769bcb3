package staticports

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/platform/store"
)

// Binding is a static port that is bound. It does not change: a change of the port makes another one.
type Binding struct {
	ID, Group string
	Adapter   part.Adapter
	Host, MAC string
	// Generation is that with which it came there; 0 where the host claimed it.
	Generation uint64
	Claim      store.Claim
	chunk      string // the object of the store that it is in
}

// Was is the binding, as what rests on it names it.
func (b *Binding) Was() *store.Binding {
	return &store.Binding{Host: b.Host, Generation: b.Generation, Claim: b.Claim}
}

// Message is the port as its host is told of it.
func (b *Binding) Message() *controllerv1.StaticPort {
	sw, group, _ := strings.Cut(b.Group, "/")
	return &controllerv1.StaticPort{Port: b.ID, Switch: sw, PortGroup: group, Vm: b.Adapter.VM,
		Adapter: b.Adapter.Name, Mac: b.MAC}
}

// On is the id of the host that the port is bound on; "" for no port.
func (b *Binding) On() string {
	if b == nil {
		return ""
	}
	return b.Host
}

// None is what stands for the binding of an adapter that has no static port.
const None = "none"

// Seen tells the binding from every other one, for people; None for an adapter without one.
func (b *Binding) Seen() string {
	if b == nil {
		return None
	}
	return SeenOf(b.ID, b.Was())
}

// SeenDigits is how many hexadecimal digits tell one binding from another.
const SeenDigits = 16

// SeenOf tells a port's binding from every other one: which host has the port, and by which of its claims, or since
// which of its guest's moves.
func SeenOf(port string, b *store.Binding) string {
	text, err := json.Marshal(struct {
		Port, Host string
		Generation uint64
		Claim      store.Claim
	}{port, b.Host, b.Generation, b.Claim})
	if err != nil { // never: all of it is plain data
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:SeenDigits]
}
