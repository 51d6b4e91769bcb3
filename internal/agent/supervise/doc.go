// Package supervise reports the agent's state to systemd by the notification protocol of sd_notify(3). Any supervisor
// that sets NOTIFY_SOCKET is served; without one nothing is sent.
//
//layout:floor=process
package supervise
