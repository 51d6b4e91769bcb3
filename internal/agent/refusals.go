package agent

import (
	"slices"

	"heddle/internal/api"
	"heddle/internal/dataplane"
)

// noteRefused keeps what a port's policy refused its guest: the latest frame of each reason, the newest first. The
// switch program tells one a second of each port at most, and the reasons are few, so that a hostile guest makes no
// more of it.
func (rp *reporter) noteRefused(e dataplane.Told) {
	r := api.Refusal{Reason: e.Reason.String(), MAC: e.MAC.String(), Time: e.At}
	if e.Claim.IsValid() {
		r.Address = e.Claim.String()
	}
	others := slices.DeleteFunc(slices.Clone(rp.refused[e.Port]), func(o api.Refusal) bool {
		return o.Reason == r.Reason
	})
	rp.refused[e.Port] = append([]api.Refusal{r}, others...)
}
