package siege

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/agent/cluster"
)

// call is the path of a call of the controllers' contract.
func call(name string) string { return "/heddle.controller.v1." + name }

// attacks are those that are made at once. Each goes on until its context ends, whatever it is answered.
func (a *attacker) attacks() []func(context.Context) {
	viewer, network := a.Viewer, a.Network
	return []func(context.Context){
		// Strangers at the hosts' port: long headers, requests that never come, and hellos that go no further.
		func(ctx context.Context) {
			a.streams(ctx, a.Hosts, call("HostService/JoinHost"), "", 20, 100, 900_000)
		},
		func(ctx context.Context) {
			a.streams(ctx, a.Hosts, call("HostService/JoinHost"), "", 20, 100, 10_000)
		},
		a.hellos,
		// Strangers at the people's port, who keep others from signing in.
		func(ctx context.Context) { a.streams(ctx, a.People, call("AccessService/GetSignIn"), "", 2, 20, 0) },
		func(ctx context.Context) { a.streams(ctx, a.People, call("AccessService/SignIn"), "", 2, 20, 0) },
		// Tokens that may do little: requests that never come, long ones, and calls that fail.
		func(ctx context.Context) { a.streams(ctx, a.People, call("AccessService/WhoAmI"), viewer, 5, 60, 0) },
		func(ctx context.Context) { a.bodies(ctx, call("AccessService/SignOut"), viewer, 39) },
		func(ctx context.Context) { a.bodies(ctx, call("FleetService/ApplyDefinition"), network, 39) },
		func(ctx context.Context) { a.bodies(ctx, call("FleetService/ApplyDefinition"), network, 3) },
		a.definitions,
		func(ctx context.Context) { a.fails(ctx, call("AccessService/SignOut"), viewer) },
		func(ctx context.Context) { a.fails(ctx, call("FleetService/ApplyDefinition"), network) },
		a.reports,
	}
}

// dial connects as an attacker.
func dial(ctx context.Context, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackersAddress)}, Timeout: 5 * time.Second}
	return d.DialContext(ctx, "tcp", to)
}

// pause waits for a moment; false when ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// streams makes connections with so many requests each, whose bodies never come, and headers of some bytes more.
func (a *attacker) streams(ctx context.Context, to, path, token string, connections, requests, header int) {
	var g sync.WaitGroup
	defer g.Wait()
	for range connections {
		g.Go(func() {
			for pause(ctx, 100*time.Millisecond) {
				a.held(ctx, to, path, token, requests, header) // whatever became of it
			}
		})
	}
}

// held holds requests on a connection for some seconds.
func (a *attacker) held(ctx context.Context, to, path, token string, requests, header int) {
	raw, err := dial(ctx, to)
	if err != nil {
		return
	}
	defer raw.Close()
	conf := a.tls()
	conf.NextProtos = []string{"h2"}
	conn := tls.Client(raw, conf)
	if conn.HandshakeContext(ctx) != nil {
		return
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return
	}
	f := http2.NewFramer(conn, nil)
	if f.WriteSettings() != nil {
		return
	}
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	fields := [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", path}, {":authority", to},
		{"content-type", "application/json"}, {"x-fill", strings.Repeat("a", header)}}
	if token != "" {
		fields = append(fields, [2]string{"authorization", "Bearer " + token})
	}
	for _, field := range fields {
		if e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true}) != nil {
			return
		}
	}
	for i := range requests {
		if request(f, uint32(2*i+1), block.Bytes()) != nil {
			return
		}
	}
	pause(ctx, 3*time.Second)
}

// request begins a request.
func request(f *http2.Framer, id uint32, block []byte) error {
	const most = 16 << 10
	first := block[:min(most, len(block))]
	rest := block[len(first):]
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndHeaders: len(rest) == 0})
	for len(rest) > 0 && err == nil {
		next := rest[:min(most, len(rest))]
		rest = rest[len(next):]
		err = f.WriteContinuation(id, len(rest) == 0, next)
	}
	return err
}

// hellos says hello at the hosts' port 400 times a second, and goes no further.
func (a *attacker) hellos(ctx context.Context) {
	here, there := net.Pipe()
	go func() { _ = tls.Client(here, a.tls()).Handshake() }() // ends with the pipe
	first := make([]byte, 4096)
	n, err := there.Read(first)
	_ = there.Close()
	if err != nil {
		a.failed("there is no hello: %v", err)
		return
	}
	var list []net.Conn
	defer func() {
		for _, conn := range list {
			_ = conn.Close()
		}
	}()
	for pause(ctx, time.Second/400) {
		conn, err := dial(ctx, a.Hosts)
		if err != nil {
			continue
		}
		_, _ = conn.Write(first[:n]) // one that was sent away hears nothing
		if list = append(list, conn); len(list) > 4000 {
			_ = list[0].Close()
			list = list[1:]
		}
	}
}

// client makes requests as an attacker.
func (a *attacker) client(conf *tls.Config) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: conf, Protocols: protocols,
		DialContext: func(ctx context.Context, _, to string) (net.Conn, error) { return dial(ctx, to) }}}
}

// post makes a request with a token, whatever it is answered.
func (a *attacker) post(ctx context.Context, client *http.Client, path, token string, body io.Reader) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.People+path, body)
	if err != nil {
		a.failed("%v", err)
		return
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+token)
	if resp, err := client.Do(q); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body) // whatever it is
		_ = resp.Body.Close()
	}
}

// blanks is a body of so many blanks, of which the end may never come.
type blanks struct {
	ctx  context.Context
	left int
	ends bool
}

func (b *blanks) Read(p []byte) (int, error) {
	if b.left == 0 && b.ends {
		return 0, io.EOF
	}
	if b.left == 0 {
		<-b.ctx.Done()
		return 0, io.EOF
	}
	n := copy(p, bytes.Repeat([]byte(" "), min(len(p), b.left, 16<<10)))
	b.left -= n
	return n, nil
}

// bodies sends bodies of so many MiB, many at a time.
func (a *attacker) bodies(ctx context.Context, path, token string, size int) {
	var g sync.WaitGroup
	defer g.Wait()
	for i := range 24 {
		g.Go(func() {
			client := a.client(a.tls())
			defer client.CloseIdleConnections()
			for pause(ctx, 100*time.Millisecond) {
				soon, cancel := context.WithTimeout(ctx, 10*time.Second)
				a.post(soon, client, path, token, &blanks{soon, size << 20, i%2 == 0})
				cancel()
			}
		})
	}
}

// definitions applies a definition of 39 MB again and again, which is more than a cluster's may have.
func (a *attacker) definitions(ctx context.Context) {
	const size = 39_000_000
	line := "# " + strings.Repeat("a", 96) + `\n`
	text := `{"file":"large.yaml","content":"` + strings.Repeat(line, size/len(line)) + `"}`
	var g sync.WaitGroup
	defer g.Wait()
	for range 4 {
		g.Go(func() {
			client := a.client(a.tls())
			defer client.CloseIdleConnections()
			for pause(ctx, 100*time.Millisecond) {
				soon, cancel := context.WithTimeout(ctx, 20*time.Second)
				a.post(soon, client, call("FleetService/ApplyDefinition"), a.Shaper, strings.NewReader(text))
				cancel()
			}
		})
	}
}

// fails makes a call again and again that comes to nothing.
func (a *attacker) fails(ctx context.Context, path, token string) {
	var g sync.WaitGroup
	defer g.Wait()
	for range 8 {
		g.Go(func() {
			client := a.client(a.tls())
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				a.post(ctx, client, path, token, strings.NewReader("{}"))
			}
		})
	}
}

// reports joins as a host, and reports changes of many ports as fast as it is let.
func (a *attacker) reports(ctx context.Context) {
	record, err := cluster.JoinInMemory(ctx, cluster.Request{Controller: a.Hosts, Token: a.Join, Name: "evil"})
	if err != nil {
		a.failed("the host does not join: %v", err)
		return
	}
	conf, err := record.TLS()
	if err != nil {
		a.failed("%v", err)
		return
	}
	client := a.client(conf)
	defer client.CloseIdleConnections()
	s, err := controllerv1connect.NewHostServiceClient(connect.NewClient(connecthttp.NewTransport(client,
		"https://"+a.Hosts, connecthttp.WithCompressors()))).FollowSlice(ctx)
	if err != nil {
		a.failed("the host does not connect: %v", err)
		return
	}
	port := func(i int) *controllerv1.HostPort {
		return &controllerv1.HostPort{Switch: "dvs", Name: fmt.Sprintf("p%d", i), PortGroup: "web", State: "up",
			Mac: "02:00:00:00:00:01", Device: "tap"}
	}
	report := &controllerv1.HostReport{}
	for i := range 20_000 {
		report.Ports = append(report.Ports, port(i))
	}
	err = s.Send(&controllerv1.FollowSliceRequest{Hello: &controllerv1.HostHello{Agent: "9", Report: report,
		Start: []byte("aaaaaaaaaaaaaaaa"), Conversation: 1, Begun: 1}})
	go func() {
		for err := error(nil); err == nil; { // ends with the stream
			_, err = s.Receive()
		}
	}()
	for i := 0; err == nil && ctx.Err() == nil; i++ {
		err = s.Send(&controllerv1.FollowSliceRequest{Change: &controllerv1.HostReportChange{
			Put: []*controllerv1.HostPort{port(i % 20_000)}}})
	}
}
