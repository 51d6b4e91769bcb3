// Package attack is the experiment "hostile-guest": a guest speaks link protocols that are not for guests, fills the
// table of MACs, bridges its adapters, or poses as others, while two VMs exchange numbered packets over a LAG between
// two hosts. It shows that these lose nothing, that the LAG does not change, and that the addresses of another guest
// stay known.
//
//layout:floor=workshop
package attack
