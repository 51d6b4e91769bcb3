package signin

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Config says by which provider people sign in.
type Config struct {
	// Issuer is the provider's address, https://HOST/PATH, exactly as it stands in its tokens; "" for no sign-in.
	Issuer string
	// ClientID is what the provider knows Heddle as: a public client, without a secret.
	ClientID string
	// NameClaim is the claim that names the person, GroupsClaim the one that lists their groups; "" for no groups.
	NameClaim, GroupsClaim string
	// GroupsPrefix is put before each group of the provider, so that none passes for a local group.
	GroupsPrefix string
	// Scopes are asked for at sign-in, besides openid.
	Scopes []string
	// CA is a file in PEM form with the authorities of the provider's certificate; "" for those of the machine.
	CA string
	// Life is for how long a sign-in counts, within ShortestLife and LongestLife.
	Life time.Duration
}

// Bounds of how long a sign-in counts, and what it is unless somebody says.
const (
	ShortestLife = 5 * time.Minute
	DefaultLife  = time.Hour
	LongestLife  = 24 * time.Hour
)

// Names of claims unless somebody says.
const (
	DefaultNameClaim    = "email"
	DefaultGroupsClaim  = "groups"
	DefaultGroupsPrefix = "oidc:"
)

// Check returns an error for what can't be a provider.
func (c *Config) Check() error {
	if c.Issuer == "" {
		if c.ClientID != "" {
			return errors.New("--oidc-client-id needs --oidc-issuer: the address of the provider")
		}
		return nil
	}
	if err := secure(c.Issuer); err != nil {
		return fmt.Errorf("--oidc-issuer: %w", err)
	}
	if strings.Contains(c.Issuer, "/.well-known/") {
		return errors.New("--oidc-issuer: leave out what begins with /.well-known")
	}
	switch {
	case c.ClientID == "":
		return errors.New("--oidc-issuer needs --oidc-client-id: as what the provider knows Heddle")
	case c.NameClaim == "":
		return errors.New("--oidc-name-claim: a claim has to name the person, such as email or sub")
	case c.Life < ShortestLife || c.Life > LongestLife:
		return fmt.Errorf("--oidc-session %s: give a time within %s and %s", c.Life, ShortestLife, LongestLife)
	case strings.ContainsFunc(c.GroupsPrefix, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("--oidc-groups-prefix: use printable characters")
	}
	return nil
}

// secure returns an error for an address that is not https://HOST.
func secure(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%.200q is no address of a provider: give https://HOST/PATH", text)
	}
	return nil
}
