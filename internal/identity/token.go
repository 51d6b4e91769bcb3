package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// A token is one word of small letters, digits and dots:
//
//	hj1.ID.BODY
//
// ID names it in lists and logs. BODY has the secret, and ends with a checksum over all before it, by which a mistyped
// token is told from one that the cluster does not know. Capital letters mean the same.

// alphabet has no 0, 1, 8 and 9, which are mistaken for letters.
func alphabet() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

const (
	joinPrefix       = "hj1"
	controllerPrefix = "hc1"
	apiPrefix        = "ht1"
	idBytes          = 5
	// The secrets are as long as makes whole letters: 160 and 176 bits.
	joinSecret = 20
	apiSecret  = 22
	sumBytes   = 3
)

// TokenID names a token; it is no secret.
type TokenID string

// NewTokenID draws one. Whoever stores the token makes sure that there is no other of that name.
func NewTokenID() TokenID {
	var b [idBytes]byte
	_, _ = rand.Read(b[:])
	return TokenID(alphabet().EncodeToString(b[:]))
}

// secret is shown by nothing in fmt, and not by encoders, as its fields are not exported. It is behind a function,
// since fmt shows what is in somebody's field that is not exported without asking Format.
type secret struct{ bytes func() []byte }

func secretOf(b []byte) secret { return secret{func() []byte { return b }} }

func (s secret) raw() []byte {
	if s.bytes == nil {
		return nil
	}
	return s.bytes()
}

// Format keeps a secret out of messages and logs.
func (secret) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("…")) }

// digest is what is stored of a secret. It is long and drawn by lot, so that a plain hash can't be reversed by trying.
func (s secret) digest(prefix string, id TokenID) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "heddle token %s.%s.", prefix, id)
	h.Write(s.raw())
	return [sha256.Size]byte(h.Sum(nil))
}

func newSecret(n int) secret {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return secretOf(b)
}

// JoinToken lets one host, or one controller, join a cluster. It carries the fingerprint of the cluster's authority, so
// that who joins knows the cluster before it trusts anything. One for a host is never good for a controller: what is
// stored of the two differs.
type JoinToken struct {
	ID     TokenID
	Root   Fingerprint
	prefix string
	secret
}

// NewJoinToken draws a token by which a host joins the cluster with that authority.
func NewJoinToken(root Fingerprint) JoinToken {
	return JoinToken{NewTokenID(), root, joinPrefix, newSecret(joinSecret)}
}

// NewControllerToken draws a token by which a controller joins.
func NewControllerToken(root Fingerprint) JoinToken {
	return JoinToken{NewTokenID(), root, controllerPrefix, newSecret(joinSecret)}
}

// ParseJoinToken reads a host's token as somebody gave it, with white space around it. Its errors are of the fault
// Mistyped.
func ParseJoinToken(text string) (JoinToken, error) { return parseJoin(joinPrefix, text) }

// ParseControllerToken reads a controller's token as ParseJoinToken does a host's.
func ParseControllerToken(text string) (JoinToken, error) { return parseJoin(controllerPrefix, text) }

func parseJoin(prefix, text string) (JoinToken, error) {
	id, body, err := open(prefix, text, sha256.Size+joinSecret)
	if err != nil {
		return JoinToken{}, err
	}
	return JoinToken{id, Fingerprint(body[:sha256.Size]), prefix, secretOf(body[sha256.Size:])}, nil
}

// Text is the whole token with its secret, to be shown once to who asked for it.
func (t JoinToken) Text() string {
	return closed(t.prefix, t.ID, append(t.Root[:], t.raw()...))
}

// Digest is what the controllers store of the secret.
func (t JoinToken) Digest() [sha256.Size]byte { return t.digest(t.prefix, t.ID) }

// String names the token without its secret.
func (t JoinToken) String() string { return t.prefix + "." + string(t.ID) + ".…" }

// Format keeps the secret out of messages and logs.
func (t JoinToken) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(t.String())) }

// APIToken lets a person or a tool use the controllers' API.
type APIToken struct {
	ID TokenID
	secret
}

// NewAPIToken draws a token.
func NewAPIToken() APIToken { return APIToken{NewTokenID(), newSecret(apiSecret)} }

// ParseAPIToken reads a token as somebody gave it, with white space around it. Its errors are of the fault Mistyped.
func ParseAPIToken(text string) (APIToken, error) {
	id, body, err := open(apiPrefix, text, apiSecret)
	return APIToken{id, secretOf(body)}, err
}

// Text is the whole token with its secret, to be shown once to who asked for it.
func (t APIToken) Text() string { return closed(apiPrefix, t.ID, t.raw()) }

// Digest is what the controllers store of the secret.
func (t APIToken) Digest() [sha256.Size]byte { return t.digest(apiPrefix, t.ID) }

// String names the token without its secret.
func (t APIToken) String() string { return apiPrefix + "." + string(t.ID) + ".…" }

// Format keeps the secret out of messages and logs.
func (t APIToken) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(t.String())) }

func checksum(head string, body []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "heddle checksum %s.", head)
	h.Write(body)
	return h.Sum(nil)[:sumBytes]
}

func closed(prefix string, id TokenID, body []byte) string {
	head := prefix + "." + string(id)
	return head + "." + alphabet().EncodeToString(append(body, checksum(head, body)...))
}

// open returns a token's parts; its body has exactly that many bytes.
func open(prefix, text string, size int) (TokenID, []byte, error) {
	text = strings.TrimSpace(text)
	letters := alphabet()
	ids := letters.EncodedLen(idBytes)
	whole := len(prefix) + 1 + ids + 1 + letters.EncodedLen(size+sumBytes)
	text, err := tidied(prefix, text, whole)
	if err != nil {
		return "", nil, err
	}
	head, code := text[:len(prefix)+1+ids], text[len(prefix)+1+ids:]
	id := TokenID(head[len(prefix)+1:])
	body, err := letters.DecodeString(code[1:])
	name, bad := letters.DecodeString(string(id))
	// The decoder passes over line feeds, so that the lengths are compared as well.
	if code[0] != '.' || err != nil || bad != nil || len(name) != idBytes || len(body) != size+sumBytes {
		return "", nil, mistyped("it has a sign that no token has")
	}
	body, sum := body[:size:size], body[size:]
	if subtle.ConstantTimeCompare(sum, checksum(head, body)) != 1 {
		return "", nil, mistyped("at least one sign of it is wrong")
	}
	return id, body, nil
}

// tidied is a token in small letters, if it begins and is as long as it should.
func tidied(prefix, text string, whole int) (string, error) {
	// What is far too long is not looked at any further.
	if len(text) <= 2*whole {
		text = strings.ToLower(text)
	}
	for other, what := range map[string]string{joinPrefix: "for a host to join", apiPrefix: "for people and tools",
		controllerPrefix: "for a controller to join"} {
		if other != prefix && strings.HasPrefix(text, other+".") {
			return "", mistyped(fmt.Sprintf("it is a token %s (%s.…), and one that begins with %s. is needed", what,
				other, prefix))
		}
	}
	if !strings.HasPrefix(text, prefix+".") {
		return "", mistyped(fmt.Sprintf("it does not begin with %s.", prefix))
	}
	if len(text) != whole {
		return "", mistyped(fmt.Sprintf("it has %d signs, and a whole one has %d", len(text), whole))
	}
	return text, nil
}

func mistyped(why string) error {
	return &TokenError{Fault: Mistyped, Err: errors.New(why)}
}
