// Package udpbatch sends and receives many UDP datagrams with one call of the kernel.
//
// It sends runs of datagrams of one length. The kernel takes each run through its stack as one piece, and divides it
// only at the device or at a receiver that wants it divided (UDP_SEGMENT, Linux 4.18, udp(7)). All runs of a Batch go
// with one sendmmsg(2). If the kernel does not divide on the path of a socket's datagrams, that call has one message
// per datagram. On the wire and to a receiver there is no difference from datagrams that were sent one by one.
//
//	s, err := udpbatch.NewSender(conn) // a connected socket
//	b.Add(first)
//	b.Add(second)
//	n, err := s.Send(&b, 100*time.Millisecond) // n of them left; b.Behind says which of them together
//	b.Reset()
//
// A Receiver reads datagrams that came in one piece in the same way (UDP_GRO, Linux 5.0).
//
//layout:floor=plans
package udpbatch
