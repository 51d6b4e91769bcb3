package view

import (
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/accounts"
)

// Accounts converts the accounts of ports and uplinks.
func Accounts(all []accounts.Account) []api.PortAccount {
	out := make([]api.PortAccount, len(all))
	for i, a := range all {
		out[i] = api.PortAccount{Switch: a.ID.Switch, Name: a.ID.Name, State: string(a.State), Received: a.Received,
			Delivered: a.Delivered, Dropped: a.Dropped, Least: a.Least, Most: a.Most,
			Fault: a.Fault, FaultCode: a.FaultCode}
		if a.State == "" {
			out[i].State = "new"
		}
	}
	return out
}

// Losses converts a device's own losses; name is "" for a device of another network namespace, or the far end of a
// pair.
func Losses(name string, l hostdev.Losses) *api.DeviceLosses {
	return &api.DeviceLosses{Device: name, RxDropped: l.RxDropped, TxDropped: l.TxDropped, RxErrors: l.RxErrors,
		TxErrors: l.TxErrors, RxMissed: l.RxMissed, RxFrameErrors: l.RxFrames}
}
