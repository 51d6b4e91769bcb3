// Command exchange moves data between two machines and checks every byte of it. The tests build it statically and run
// it in guests and in namespaces.
//
//	exchange serve PORT            serve TCP and UDP on all addresses until killed
//	exchange tcp HOST:PORT BYTES   send that much, receive as much, compare SHA-256 sums both ways
//	exchange udp HOST:PORT BYTES   the same in datagrams of 1400 bytes, each answered by its complement
//	exchange sizes HOST:PORT CUT N,N,…       datagrams of these sizes, and a large frame cut into some of CUT bytes
//	exchange learn HOST:PORT ROOM HEADERS    find the path's MTU, which is ROOM, by the errors that come
//	exchange offload DEVICE whole|cut|plain together|apart   what the device does for senders, and receivers
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "exchange:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "serve" {
		return serve(":" + args[1])
	}
	if len(args) == 4 {
		return runFour(args)
	}
	if len(args) != 3 {
		return errUsage
	}
	size, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if args[0] == "udp" {
		return udp(args[1], size)
	}
	return tcp(args[1], size)
}

var errUsage = errors.New("usage: exchange serve PORT | tcp HOST:PORT BYTES | udp HOST:PORT BYTES | sizes HOST:PORT " +
	"CUT N,N,… | learn HOST:PORT ROOM HEADERS | offload DEVICE whole|cut|plain together|apart")

// runFour runs the commands of three arguments.
func runFour(args []string) error {
	if args[0] == "offload" {
		return offload(args[1], args[2], args[3])
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if args[0] == "sizes" {
		return sizes(args[1], n, args[3])
	}
	headers, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	if args[0] != "learn" {
		return errUsage
	}
	return learn(args[1], n, headers)
}

// serve answers both protocols.
func serve(addr string) error {
	datagrams, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	streams, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go complement(datagrams)
	fmt.Println("serving")
	for {
		conn, err := streams.Accept()
		if err != nil {
			return err
		}
		go answer(conn)
	}
}

// complement sends every datagram back with all bits inverted.
func complement(c net.PacketConn) {
	buf := make([]byte, 65536)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		invert(buf[:n])
		_, _ = c.WriteTo(buf[:n], from)
	}
}

// answer reads a stream to its end, and sends the sum of what came, as many bytes of its own, and their sum.
func answer(conn net.Conn) {
	defer conn.Close()
	got := sha256.New()
	n, err := io.Copy(got, conn)
	if err != nil {
		return
	}
	own := random(int(n), 2)
	sum := sha256.Sum256(own)
	for _, part := range [][]byte{got.Sum(nil), own, sum[:]} {
		if _, err := conn.Write(part); err != nil {
			return
		}
	}
}

// tcp is the client of answer.
func tcp(addr string, size int) error {
	conn, err := dial(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	own := random(size, 1)
	// Written in pieces, because patience applies to each; a bytes.Reader would write itself in one.
	if _, err := io.CopyBuffer(steady{conn}, struct{ io.Reader }{bytes.NewReader(own)},
		make([]byte, 64<<10)); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	reply, err := io.ReadAll(steady{conn})
	if err != nil {
		return err
	}
	if len(reply) != size+2*sha256.Size {
		return fmt.Errorf("the reply has %d bytes, not %d", len(reply), size+2*sha256.Size)
	}
	sum := sha256.Sum256(own)
	if !bytes.Equal(reply[:sha256.Size], sum[:]) {
		return errors.New("the server got other bytes than were sent")
	}
	back := sha256.Sum256(reply[sha256.Size : sha256.Size+size])
	if !bytes.Equal(reply[sha256.Size+size:], back[:]) {
		return errors.New("other bytes came back than the server sent")
	}
	fmt.Printf("tcp %d bytes each way\n", size)
	return nil
}

// patience is for how long no byte may move: an emulated guest on a busy machine is slow, but not dead.
const patience = 2 * time.Minute

// steady is a connection that may take as long as it needs while bytes move.
type steady struct{ net.Conn }

func (s steady) Read(b []byte) (int, error) {
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return s.Conn.Read(b)
}

func (s steady) Write(b []byte) (int, error) {
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return s.Conn.Write(b)
}

// dial tries until the server listens.
func dial(addr string) (net.Conn, error) {
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", addr, patience/2); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// udp sends one datagram after the other, each when the one before was answered, and reports how many it had to repeat.
func udp(addr string, size int) error {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	repeated := 0
	want, got := make([]byte, 1400), make([]byte, 2000)
	for sent := 0; sent < size; sent += len(want) {
		out := random(len(want), int64(sent)+3)
		copy(want, out)
		invert(want)
		for tries := 0; ; tries++ {
			if tries == 6 {
				return fmt.Errorf("no right answer to the datagram at byte %d", sent)
			}
			if _, err := conn.Write(out); err != nil {
				return err
			}
			answered, err := awaitAnswer(conn, want, got)
			if err != nil {
				return err
			}
			if answered {
				break
			}
			repeated++
		}
	}
	fmt.Printf("udp %d bytes each way, repeated %d\n", size, repeated)
	return nil
}

// awaitAnswer waits for the answer until it must be lost and not merely late. Other answers are late ones, to a
// repeated datagram, and say nothing about this one.
func awaitAnswer(conn net.Conn, want, buf []byte) (bool, error) {
	if err := conn.SetReadDeadline(time.Now().Add(patience / 6)); err != nil {
		return false, err
	}
	for {
		n, err := conn.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return false, nil
		case err == nil && bytes.Equal(buf[:n], want):
			return true, nil
		}
		if err != nil { // such as refused, while the server starts
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func random(n int, seed int64) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(seed)).Read(b)
	return b
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}
