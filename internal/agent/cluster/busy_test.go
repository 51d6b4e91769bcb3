package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/agent/state"
)

// patience is how long a test waits for what has to come.
const patience = time.Minute

// busyHost is a host in which one call of the conversation lasts until it is freed.
type busyHost struct {
	slow    string // the call that lasts
	entered chan struct{}
	free    chan struct{}
	ends    func() // closes free

	mu   sync.Mutex
	took []string
}

func (h *busyHost) call(ctx context.Context, name string) error {
	h.mu.Lock()
	h.took = append(h.took, name)
	h.mu.Unlock()
	if name != h.slow {
		return nil
	}
	select {
	case h.entered <- struct{}{}:
	case <-ctx.Done():
	}
	select {
	case <-h.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *busyHost) calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.took)
}

func (h *busyHost) Given(context.Context) (*state.Slice, error) { return nil, nil }

func (h *busyHost) Take(ctx context.Context, _ *state.Slice) ([]string, error) {
	return nil, h.call(ctx, "Take")
}

func (h *busyHost) Report(context.Context) (*controllerv1.HostReport, error) {
	return &controllerv1.HostReport{}, nil
}

func (h *busyHost) Moves(ctx context.Context, _ *controllerv1.HostMoves) error {
	return h.call(ctx, "Moves")
}

func (h *busyHost) Flapping(ctx context.Context, _ *controllerv1.HostFlapping) error {
	return h.call(ctx, "Flapping")
}

func (h *busyHost) Bound(ctx context.Context, _ *controllerv1.StaticPorts) error {
	return h.call(ctx, "Bound")
}

func (h *busyHost) Conflicts(ctx context.Context, _ *controllerv1.PortConflicts) error {
	return h.call(ctx, "Conflicts")
}

func (h *busyHost) Unsettled(context.Context) ([]*controllerv1.PortClaim, error) { return nil, nil }

func (h *busyHost) Settled(context.Context, *controllerv1.PortClaim, *controllerv1.PortAnswer) error {
	return nil
}

// member is the membership of a cluster of one controller.
type member struct {
	host  *busyHost
	at    string
	roots *x509.CertPool
}

func (m member) Controllers() []string { return []string{m.at} }

func (m member) TLS() (*tls.Config, error) { return &tls.Config{RootCAs: m.roots}, nil }

func (m member) KeepControllers([]string) error {
	return m.host.call(context.Background(), "KeepControllers")
}

func (m member) Request(bool) ([]byte, error) { return nil, nil }

func (m member) Renewed(*controllerv1.HostIdentity) error { return nil }

// speaker is a controller that says what a test has it say.
type speaker struct {
	controllerv1connect.UnimplementedHostServiceHandler
	says  chan *controllerv1.FollowSliceResponse
	heard chan *controllerv1.FollowSliceRequest
}

// FollowSlice ends when there is nothing more to say.
func (s *speaker) FollowSlice(ctx context.Context,
	stream controllerv1connect.HostServiceFollowSliceServerStream) error {
	go func() {
		for {
			m, err := stream.Receive()
			if err != nil {
				return
			}
			select {
			case s.heard <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case m, more := <-s.says:
			if !more {
				return nil
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// conversing is a conversation of a host with a controller, by HTTP/2; over is closed when it has ended.
func conversing(t *testing.T, slow string) (h *busyHost, s *speaker, over chan struct{}) {
	t.Helper()
	h = &busyHost{slow: slow, entered: make(chan struct{}), free: make(chan struct{})}
	h.ends = sync.OnceFunc(func() { close(h.free) })
	s = &speaker{says: make(chan *controllerv1.FollowSliceResponse), heard: make(chan *controllerv1.FollowSliceRequest)}
	rpc := connect.NewServer()
	controllerv1connect.RegisterHostServiceHandler(rpc, s)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, rpc)
	srv := httptest.NewUnstartedServer(mux)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	ctx, cancel := context.WithCancel(t.Context())
	over = make(chan struct{})
	ended, ends := make(chan struct{}), sync.OnceFunc(func() { close(over) })
	c := New(Options{Host: h, Ports: h, Moves: h, Membership: member{h, strings.TrimPrefix(srv.URL, "https://"), roots},
		Log: slog.New(slog.DiscardHandler), Connected: func(_ string, err error) {
			if err != nil {
				ends()
			}
		}})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		h.ends()
		<-ended
	})
	s.say(t, &controllerv1.FollowSliceResponse{TakesChanges: true})
	return h, s, over
}

func (s *speaker) say(t *testing.T, m *controllerv1.FollowSliceResponse) {
	t.Helper()
	select {
	case s.says <- m:
	case <-time.After(patience):
		t.Fatal("nobody listens")
	}
}

// awaitPong waits for the answer to a ping.
func (s *speaker) awaitPong(t *testing.T, number uint64) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case m := <-s.heard:
			if m.GetPong() == number {
				return
			}
		case <-late:
			t.Fatalf("ping %d is not answered", number)
		}
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("not so: " + what)
	}
}

// A host that is busy with what the controller said answers pings meanwhile, and takes the rest in afterwards, in the
// order in which it was said. A controller that gets no answer takes a host for gone, and lets another machine with the
// same certificate take its place.
func TestS103_AHostAnswersPingsWhileItIsBusy(t *testing.T) {
	for slow, m := range map[string]*controllerv1.FollowSliceResponse{
		"Take":            {Update: whole(7)},
		"Moves":           {Moves: &controllerv1.HostMoves{}},
		"Flapping":        {Flapping: &controllerv1.HostFlapping{}},
		"Bound":           {Ports: &controllerv1.StaticPorts{}},
		"Conflicts":       {Conflicts: &controllerv1.PortConflicts{}},
		"KeepControllers": {Controllers: []string{"192.0.2.1:7443"}},
	} {
		t.Run(slow, func(t *testing.T) {
			h, s, over := conversing(t, slow)
			s.say(t, m)
			await(t, h.entered, "the host is busy")
			want := []string{slow}
			for n := uint64(1); n <= 3; n++ {
				s.say(t, &controllerv1.FollowSliceResponse{Ping: n})
				s.awaitPong(t, n)
			}
			for _, after := range []string{"Moves", "Flapping", "Bound", "Moves"} {
				if after != slow {
					s.say(t, map[string]*controllerv1.FollowSliceResponse{
						"Moves":    {Moves: &controllerv1.HostMoves{}, Ping: 4},
						"Flapping": {Flapping: &controllerv1.HostFlapping{}, Ping: 4},
						"Bound":    {Ports: &controllerv1.StaticPorts{}, Ping: 4}}[after])
					s.awaitPong(t, 4)
					want = append(want, after)
				}
			}
			if got := h.calls(); slow != "Take" && !slices.Equal(got, want[:1]) {
				t.Errorf("the host took in %v before %s had ended", got, slow)
			}
			close(s.says) // what was said before the end is taken in all the same
			h.ends()
			for over := over; over != nil; {
				select {
				case <-s.heard:
				case <-over:
					over = nil
				case <-time.After(patience):
					t.Fatal("the conversation does not end")
				}
			}
			if got := h.calls(); !slices.Equal(got, want) {
				t.Errorf("the host took in %v, want %v", got, want)
			}
		})
	}
}
