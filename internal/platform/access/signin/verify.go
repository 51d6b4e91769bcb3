package signin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"

	"heddle/internal/platform/access/roles"
)

// Bounds of a token.
const (
	// longestToken is how long an ID token is at most, in bytes.
	longestToken = 16 << 10
	// skew is how far the clocks of the provider and the controller may be apart.
	skew = time.Minute
	// mostGroups is how many groups somebody may be in.
	mostGroups = 256
	// longestName is how long a person's name is at most, in bytes.
	longestName = 128
)

// Person is somebody whom the provider knows.
type Person struct {
	Name, Issuer string
	Groups       []string
	// Token names the ID token without giving it away; Expires is when that ends.
	Token   string
	Expires time.Time
}

// TokenError says why an ID token does not count. It does not quote the token.
type TokenError struct{ Why string }

func (e *TokenError) Error() string {
	return "the identity provider's token does not count: " + e.Why + " (sign in again: heddle login)"
}

func fault(format string, args ...any) error { return &TokenError{fmt.Sprintf(format, args...)} }

// Verify returns whose ID token that is. nonce is what the person's program sent to the provider, "" for none.
func (p *Provider) Verify(ctx context.Context, token, nonce string) (*Person, error) {
	if len(token) > longestToken {
		return nil, fault("it is longer than %d bytes", longestToken)
	}
	if !compact(token) {
		return nil, fault("it is no ID token")
	}
	k, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	keys := &asked{known: k, now: p.now()}
	conf := &oidc.Config{ClientID: p.conf.ClientID, SupportedSigningAlgs: algorithms(),
		Now: func() time.Time { return p.now().Add(-skew) }}
	id, err := oidc.NewVerifier(p.conf.Issuer, keys, conf).Verify(ctx, token)
	switch {
	case errors.Is(keys.away, errTooOften) && err != nil:
		return nil, fault("it names a key that is not known, and %v", errTooOften)
	case keys.away != nil:
		p.note(keys.away)
		if err != nil {
			return nil, &AwayError{p.conf.Issuer, keys.away}
		}
	case err != nil:
		return nil, p.why(err, token)
	}
	return p.person(id, token, nonce)
}

// asked are the keys of a provider as the verifier asks for them.
type asked struct {
	*known
	now  time.Time
	away error // why the provider did not give them
}

// VerifySignature returns what is signed.
func (a *asked) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	text, err := a.keys.VerifySignature(ctx, jwt)
	if errors.Unwrap(err) == nil { // keys that can't be had have a reason, a signature that does not fit has none
		a.keys.served.Store(true)
		return text, err
	}
	if a.away = brief(err); a.before == nil || a.now.Sub(a.before.at) > stale {
		return nil, err
	}
	return a.before.VerifySignature(ctx, jwt)
}

// why says what is wrong with a token that the verifier refuses, in words of which none comes from the token.
func (p *Provider) why(err error, token string) error {
	var expired *oidc.TokenExpiredError
	if errors.As(err, &expired) {
		if y := expired.Expiry.Year(); y < 1970 || y > 9999 {
			return fault("it does not say when it ends (exp)")
		}
		return fault("it ended at %s", expired.Expiry.UTC().Format(time.DateTime))
	}
	u, ok := unproved(token)
	switch {
	case !ok:
		return fault("it is no ID token")
	case !slices.Contains(algorithms(), u.Algorithm):
		return fault("it is not signed by one of %s", strings.Join(algorithms(), ", "))
	case u.Issuer != p.conf.Issuer:
		return fault("it is not of %s", p.conf.Issuer)
	case !slices.Contains(u.audience(), p.conf.ClientID):
		return fault("it is not for the client %s", p.conf.ClientID)
	case u.NotBefore > float64(p.now().Unix()):
		return fault("it does not count yet: the clocks of the provider and this controller are apart")
	}
	return fault("it is not signed by a key of %s", p.conf.Issuer)
}

// claimed is what a token says of itself, which nobody has made sure of.
type claimed struct {
	Algorithm string  `json:"alg"`
	Issuer    string  `json:"iss"`
	Audience  any     `json:"aud"`
	NotBefore float64 `json:"nbf"`
}

func (c *claimed) audience() (list []string) {
	switch v := c.Audience.(type) {
	case string:
		return []string{v}
	case []any:
		for _, a := range v {
			text, _ := a.(string)
			list = append(list, text)
		}
	}
	return list
}

// unproved reads what a token says of itself; ok is false for what is none.
func unproved(token string) (c claimed, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	for _, part := range parts[:2] {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || json.Unmarshal(text, &c) != nil {
			return c, false
		}
	}
	return c, true
}

// person reads who it is from a token that is the provider's.
func (p *Provider) person(id *oidc.IDToken, token, nonce string) (*Person, error) {
	var claims map[string]any
	if err := id.Claims(&claims); err != nil {
		return nil, fault("its claims can't be read")
	}
	if err := p.suits(id, claims, nonce); err != nil {
		return nil, err
	}
	name, _ := claims[p.conf.NameClaim].(string)
	if !named(name) {
		return nil, fault("its claim %s is no name of one line and at most %d bytes, of characters "+
			"that show and without blanks around it", p.conf.NameClaim, longestName)
	}
	if verified, _ := claims["email_verified"].(bool); p.conf.NameClaim == "email" && !verified {
		return nil, fault("the provider does not say that the address of %s is verified (email_verified)", name)
	}
	groups, err := p.groups(claims)
	if err != nil {
		return nil, err
	}
	return &Person{Name: name, Issuer: p.conf.Issuer, Groups: groups, Token: mark(p.conf.Issuer, token),
		Expires: id.Expiry.Add(skew)}, nil
}

// compact reports whether a text is three parts in base64url without padding (RFC 7515, 3.1). Decoders pass over line
// breaks, so that one token could be written in many ways.
func compact(token string) bool {
	return strings.Count(token, ".") == 2 && !strings.ContainsFunc(token, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// mark names an ID token by what its provider signed. The signature itself can be written in several ways: one by ECDSA
// counts with the other sign as well, and its last character has bits that no decoder reads.
func mark(issuer, token string) string {
	signed := token[:strings.LastIndexByte(token, '.')]
	sum := sha256.Sum256([]byte(issuer + "\x00" + signed))
	return hex.EncodeToString(sum[:])
}

// named reports whether a text can be somebody's name: lists and the audit log show it as it is, so that it must not
// look like another, nor be that of who calls without having signed in.
func named(name string) bool {
	taken := map[string]bool{"root": true, "the controller": true}
	return !taken[name] && len(name) <= longestName && (roles.Who{Kind: roles.Person, Name: name}).Check() == nil &&
		strings.TrimSpace(name) == name && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// suits checks what the verifier does not.
func (p *Provider) suits(id *oidc.IDToken, claims map[string]any, nonce string) error {
	if y := id.Expiry.Year(); y < 1970 || y > 9999 {
		return fault("it does not say when it ends (exp)")
	}
	if id.Expiry.Sub(p.now()) > LongestLife+skew {
		return fault("it counts for more than %s", LongestLife)
	}
	if id.IssuedAt.After(p.now().Add(skew)) {
		return fault("it was made in the future: the clocks of the provider and this controller are apart")
	}
	azp, _ := claims["azp"].(string)
	if len(id.Audience) > 1 && azp != p.conf.ClientID || azp != "" && azp != p.conf.ClientID {
		return fault("it was made for another client")
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1 {
		return fault("it does not answer this sign-in (nonce)")
	}
	return nil
}

// groups are those of the person. Names that can be nobody's are left out: they can give nothing.
func (p *Provider) groups(claims map[string]any) (list []string, err error) {
	if p.conf.GroupsClaim == "" {
		return nil, nil
	}
	var all []any
	elsewhere, _ := claims["_claim_names"].(map[string]any)
	switch v := claims[p.conf.GroupsClaim].(type) {
	case nil:
		if elsewhere[p.conf.GroupsClaim] != nil { // as Entra ID has it for people in many groups
			return nil, fault("it has too many groups to list them (_claim_names): have the provider send those for " +
				"Heddle alone")
		}
	case string:
		all = []any{v}
	case []any:
		all = v
	default:
		return nil, fault("its claim %s is no list of groups", p.conf.GroupsClaim)
	}
	if len(all) > mostGroups {
		return nil, fault("it names %d groups, and at most %d are taken: have the provider send those for Heddle alone",
			len(all), mostGroups)
	}
	for _, v := range all {
		g, _ := v.(string)
		who := roles.Who{Kind: roles.Group, Name: p.conf.GroupsPrefix + g}
		if g != "" && who.Check() == nil {
			list = append(list, who.Name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
