// Package allpairs is the experiment "all-pairs": two, four and eight nested hosts on one physical host with two
// uplinks each send to every other one at once, as the hosts of a nested vSAN do, in promiscuous mode and with MAC
// learning.
//
//layout:floor=workshop
package allpairs
