package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// AccessRole is what a person or a tool may do at a controller: a named set of permissions.
type AccessRole string

// WhoAmI is as whom a controller knows the caller.
type WhoAmI struct {
	Name string `json:"name"`
	// Role is the strongest one for the whole cluster; "" for none.
	Role AccessRole `json:"role"`
	// Look: the caller may capture and trace frames.
	Look bool `json:"look"`
	// Expires is when the token ends; zero at the socket.
	Expires time.Time `json:"expires,omitzero"`
	// Cluster is the cluster's id.
	Cluster string `json:"cluster"`
	// Groups are those of the person or the token, Grants all that they have been granted.
	Groups []string      `json:"groups"`
	Grants []AccessGrant `json:"grants"`
	// TokenID is the token's; "" at the socket. SignedIn: it came by signing in.
	TokenID  string `json:"tokenId"`
	SignedIn bool   `json:"signedIn"`
	// Issuer is the identity provider that knows the person; "" for who did not sign in.
	Issuer string `json:"issuer"`
}

// SignInTerms say by which identity provider people sign in.
type SignInTerms struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientId"`
	// Scopes are to be asked for.
	Scopes []string `json:"scopes"`
	// RevocationURL is where what renews a sign-in is taken back; "" for nowhere.
	RevocationURL string `json:"revocationUrl"`
	// AuthorizationURL is for a browser, TokenURL gives tokens, DeviceURL is for who has no browser; "" for none.
	AuthorizationURL string `json:"authorizationUrl"`
	TokenURL         string `json:"tokenUrl"`
	DeviceURL        string `json:"deviceUrl"`
	// CA are the authorities of the provider's certificate in PEM form; "" for those of the machine.
	CA string `json:"ca"`
}

// SignedIn is what a person gets who signed in.
type SignedIn struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Groups  []string  `json:"groups"`
	Expires time.Time `json:"expires,omitzero"`
	Trust   Trust     `json:"trust"`
}

// Trust is by what callers know a cluster's controllers.
type Trust struct {
	Cluster string `json:"cluster"`
	// Fingerprint of the root that issues, in hexadecimal digits.
	Fingerprint string `json:"fingerprint"`
	// Roots in PEM form, the one that issues first.
	Roots string `json:"roots"`
	// URLs are where the controllers answer people and tools.
	URLs []string `json:"urls"`
}

// TokenTerms are those of a token for a person or a tool.
type TokenTerms struct {
	// Name says whose it is.
	Name string     `json:"name"`
	Role AccessRole `json:"role"`
	// Look: it allows captures and traces.
	Look bool `json:"look"`
	// Lasts is how long it counts; 0 for 30 days.
	Lasts time.Duration `json:"lasts"`
	// Scopes are the parts of the cluster that the role is for; none for all of it.
	Scopes []AccessScope `json:"scopes"`
}

// NewToken is a token for a person or a tool, which is shown this once.
type NewToken struct {
	Token   string    `json:"token"`
	ID      string    `json:"id"`
	Expires time.Time `json:"expires"`
	// Trust is what its owner needs beside it.
	Trust Trust `json:"trust"`
}

// AccessToken is the token of a person or a tool, without its secret.
type AccessToken struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Role    AccessRole `json:"role"`
	Look    bool       `json:"look"`
	Made    time.Time  `json:"made"`
	Expires time.Time  `json:"expires"`
	// By is who made it.
	By string `json:"by"`
	// Expired: it counts no more.
	Expired bool `json:"expired"`
	// Grants are what the token allows by itself.
	Grants []AccessGrant `json:"grants"`
	// Person signed in and got the token for it, with their groups; "" for another token.
	Person string   `json:"person"`
	Groups []string `json:"groups"`
}

// AuditResult is what became of a call.
type AuditResult string

// The results.
const (
	AuditBegun   AuditResult = "begun" // nothing more is known: the controller ended before the call did
	AuditDone    AuditResult = "done"
	AuditFailed  AuditResult = "failed"
	AuditRefused AuditResult = "refused"
)

// AuditQuery selects entries of the audit log; what is empty selects all.
type AuditQuery struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Who, Call, Object and From are parts of what an entry has.
	Who    string      `json:"who"`
	Call   string      `json:"call"`
	Object string      `json:"object"`
	From   string      `json:"from"`
	Result AuditResult `json:"result"`
	// Most is how many entries there are at most, the newest; 0 for 200.
	Most int `json:"most"`
	// Controller is the name of the one at which; "" for all.
	Controller string `json:"controller"`
}

// AuditEntry is one call that changed something, or was refused.
type AuditEntry struct {
	Number int64     `json:"number"`
	At     time.Time `json:"at"`
	// Ended is when it was answered.
	Ended time.Time `json:"ended,omitzero"`
	Who   string    `json:"who"`
	// Token is the token's id.
	Token   string      `json:"token"`
	Role    string      `json:"role"`
	From    string      `json:"from"`
	Call    string      `json:"call"`
	Objects []string    `json:"objects"`
	Result  AuditResult `json:"result"`
	// Error says why it failed or was refused.
	Error string `json:"error"`
	// Times is how many refusals the entry stands for, where that is more than one.
	Times int `json:"times"`
	// Controller is the name of the one that recorded it.
	Controller string `json:"controller"`
	// Groups of the caller, and the grant that allowed the call.
	Groups []string `json:"groups"`
	Grant  string   `json:"grant"`
	// Issuer is the identity provider that knows the person; "" for others.
	Issuer string `json:"issuer"`
}

// Audit are entries of the audit log.
type Audit struct {
	// Entries, the oldest first, by the clocks of the controllers.
	Entries []AuditEntry `json:"entries"`
	// More is how many older entries were selected as well.
	More int `json:"more"`
	// Damaged is how many lines of the logs can't be read.
	Damaged int `json:"damaged"`
	// Unreachable are the names of controllers that do not answer: their entries are missing.
	Unreachable []string `json:"unreachable"`
}

// AuditChain is what the check of an audit log found: each line has a hash of itself and the line before.
type AuditChain struct {
	Controller string `json:"controller"`
	// Series is "changes", "refusals" or "frequent".
	Series string `json:"series"`
	// Lines were checked; Unchained of them have no hash, since an earlier version wrote them.
	Lines     int `json:"lines"`
	Unchained int `json:"unchained"`
	// Head is the hash of the last line, Number that of its entry.
	Head   string `json:"head"`
	Number int64  `json:"number"`
	// Known: the head that was asked for is the hash of one of the lines.
	Known bool `json:"known"`
	// Faults say which lines do not fit.
	Faults []string `json:"faults"`
}

// AuditCheck is the check of all audit logs.
type AuditCheck struct {
	Chains []AuditChain `json:"chains"`
	// Unreachable are the names of controllers that do not answer.
	Unreachable []string `json:"unreachable"`
}

// accessCalls are those of who may do what.
type accessCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.AccessServiceClient
}

// WhoAmI says as whom the controller knows the caller.
func (a accessCalls) WhoAmI(ctx context.Context) (*WhoAmI, error) {
	out, err := call[WhoAmI, controllerv1.WhoAmIRequest, controllerv1.WhoAmIResponse](ctx, a.fleet, a.rpc.WhoAmI, nil)
	return &out, err
}

// SignInTerms says by which identity provider people sign in.
func (a accessCalls) SignInTerms(ctx context.Context) (*SignInTerms, error) {
	out, err := call[SignInTerms, controllerv1.GetSignInRequest, controllerv1.GetSignInResponse](ctx, a.fleet,
		a.rpc.GetSignIn, nil)
	return &out, err
}

// SignIn gets a token for what an identity provider gave.
func (a accessCalls) SignIn(ctx context.Context, idToken, nonce string) (*SignedIn, error) {
	out, err := call[SignedIn, controllerv1.SignInRequest, controllerv1.SignInResponse](ctx, a.fleet, a.rpc.SignIn,
		struct {
			IDToken string `json:"idToken"`
			Nonce   string `json:"nonce"`
		}{idToken, nonce})
	return &out, err
}

// SignOut withdraws the caller's own token.
func (a accessCalls) SignOut(ctx context.Context) error {
	_, err := call[struct{}, controllerv1.SignOutRequest, controllerv1.SignOutResponse](ctx, a.fleet, a.rpc.SignOut,
		nil)
	return err
}

// Trust says by what callers know the controllers.
func (a accessCalls) Trust(ctx context.Context) (*Trust, error) {
	out, err := call[Trust, controllerv1.GetTrustRequest, controllerv1.GetTrustResponse](ctx, a.fleet, a.rpc.GetTrust,
		nil)
	return &out, err
}

// CreateToken makes a token for a person or a tool.
func (a accessCalls) CreateToken(ctx context.Context, q TokenTerms) (*NewToken, error) {
	out, err := call[NewToken, controllerv1.CreateAPITokenRequest, controllerv1.CreateAPITokenResponse](ctx, a.fleet,
		a.rpc.CreateAPIToken, q)
	return &out, err
}

// Tokens lists the tokens of people and tools.
func (a accessCalls) Tokens(ctx context.Context) ([]AccessToken, error) {
	out, err := call[struct {
		Tokens []AccessToken `json:"tokens"`
	}, controllerv1.ListAPITokensRequest, controllerv1.ListAPITokensResponse](ctx, a.fleet, a.rpc.ListAPITokens, nil)
	return out.Tokens, err
}

// RevokeToken withdraws a token.
func (a accessCalls) RevokeToken(ctx context.Context, id string) error {
	_, err := call[struct{}, controllerv1.RevokeAPITokenRequest, controllerv1.RevokeAPITokenResponse](ctx, a.fleet,
		a.rpc.RevokeAPIToken, struct {
			ID string `json:"id"`
		}{id})
	return err
}

// Audit lists what was changed or refused at the controller.
func (a accessCalls) Audit(ctx context.Context, q AuditQuery) (*Audit, error) {
	out, err := call[Audit, controllerv1.ListAuditRequest, controllerv1.ListAuditResponse](ctx, a.fleet,
		a.rpc.ListAudit, q)
	return &out, err
}

// VerifyAudit checks that the audit logs are as they were written. head is the hash of a line, "" for none.
func (a accessCalls) VerifyAudit(ctx context.Context, head string) (*AuditCheck, error) {
	out, err := call[AuditCheck, controllerv1.VerifyAuditRequest, controllerv1.VerifyAuditResponse](ctx, a.fleet,
		a.rpc.VerifyAudit, struct {
			Head string `json:"head"`
		}{head})
	return &out, err
}
