package health

import (
	"fmt"
	"time"

	"heddle/internal/api"
)

// CheckSignIn is what a finding about the identity provider is of.
const CheckSignIn = "sign-in"

// SignIn says how the identity provider is: fault is why it could not be asked, since when, "" where it answers; none
// without a provider.
func SignIn(issuer, fault string, since time.Time) []api.HealthFinding {
	switch {
	case issuer == "":
		return nil
	case fault == "":
		return []api.HealthFinding{fine(CheckSignIn, "the identity provider "+issuer+" answers")}
	}
	text := fmt.Sprintf("the identity provider %s has not answered as it should since %s: %s", issuer,
		since.UTC().Format(time.DateTime), fault)
	return []api.HealthFinding{finding(CheckSignIn, api.HealthWrong, text, "see whether it runs, and whether this "+
		"controller reaches it and knows its certificate (--oidc-ca); who is signed in stays so")}
}
