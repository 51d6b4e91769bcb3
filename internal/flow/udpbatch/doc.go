// Package udpbatch sends and receives many UDP datagrams with one call of the kernel.
//
// What is sent are runs of datagrams of one length, each of which the kernel takes through its stack as one and divides
// only at the device or at a receiver that wants it divided (UDP_SEGMENT, Linux 4.18, udp(7)), and all runs of a Batch
// go with one sendmmsg(2). Where the kernel does not divide on the way that a socket's datagrams take, each has its own
// place in that call. On the wire and to a receiver nothing is different from datagrams that were sent one by one.
//
//	s, err := udpbatch.NewSender(conn) // a connected socket
//	b.Add(first)
//	b.Add(second)
//	n, err := s.Send(&b, 100*time.Millisecond) // n of them left; b.Run says which of them together
//	b.Reset()
//
// A Receiver reads in the same way what came in one piece (UDP_GRO, Linux 5.0).
package udpbatch
