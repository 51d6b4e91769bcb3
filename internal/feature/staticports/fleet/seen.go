package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"heddle/internal/controller/adapters"
	"heddle/internal/platform/store"
)

// None is what stands for the binding of an adapter that has no static port.
const None = "none"

// seen tells a binding from every other one, for people; None for an adapter without one.
func seen(b *adapters.Binding) string {
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
