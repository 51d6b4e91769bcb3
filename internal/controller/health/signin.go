package health

import (
	"fmt"
	"time"

	"heddle/internal/api"
)

// SignIn says how the identity provider is: fault is why it could not be asked, since when, "" where it answers; none
// without a provider.
func SignIn(issuer, fault string, since time.Time) []api.HealthFinding {
	const check = "sign-in"
	switch {
	case issuer == "":
		return nil
	case fault == "":
		return []api.HealthFinding{fine(check, "the identity provider "+issuer+" answers")}
	}
	text := fmt.Sprintf("the identity provider %s has not answered as it should since %s: %s", issuer,
		since.UTC().Format(time.DateTime), fault)
	return []api.HealthFinding{finding(check, api.HealthWrong, text, "see whether it runs, and whether this "+
		"controller reaches it and knows its certificate (--oidc-ca); who is signed in stays so")}
}
