// Package msgsize is the experiment "message-size": how much one TCP connection carries by the size of its messages,
// from VM to VM and through a virtual firewall of the same host, with the guests' offloads on and off, as the third
// article measured it in 2008.
//
//layout:floor=workshop
package msgsize
