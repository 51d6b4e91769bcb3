// Package flowexport is the benchmark "flow-export": what metering and export of flows cost two hosts that exchange
// traffic, in packet rate, transaction rate, throughput and CPU time, by the method of the article "VDS IPFIX
// performance with NSX-V and vRNI" (VMware knowledge base 314383), whose figures it prints beside its own.
//
//layout:floor=workshop
package flowexport
