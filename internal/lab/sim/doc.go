// Package sim runs experiments on the model alone: hosts, physical switches and guests are values, time is simulated,
// and nothing on the machine is changed. It shows exactly which frames go where, and so the replies to a ping and the
// frames on every link. It does not show how fast this is.
//
//layout:floor=workshop pure
package sim
