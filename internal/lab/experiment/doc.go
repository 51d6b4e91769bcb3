// Package experiment describes the experiments that come with Heddle: for each row the scenario it runs in, the two
// ends of its traffic, and the figure it is compared with. Values only: the real lab and the simulation both run them.
//
//layout:floor=workshop pure
package experiment
