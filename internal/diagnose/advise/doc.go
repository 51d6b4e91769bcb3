// Package advise finds what is misconfigured on a host: rules read the plan, the state of the devices, the counters,
// the MAC tables, the events and what LACP and LLDP report, and each finding has the measured sign and the command that
// fixes it. It is pure.
//
//layout:floor=kernel
package advise
