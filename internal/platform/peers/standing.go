package peers

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Standings are how the other controllers stand: brief leaves out what etcd is asked for.
func (r *Roster) Standings(ctx context.Context, brief bool) []Answer[*controllerv1.GetControllerResponse] {
	return AskOthers(ctx, r, AskTime, func(ctx context.Context, k *Link) (*controllerv1.GetControllerResponse,
		error) {
		return k.GetController(ctx, &controllerv1.GetControllerRequest{Brief: brief})
	})
}
