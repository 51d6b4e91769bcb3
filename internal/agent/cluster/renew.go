package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// renewTime bounds a renewal.
const renewTime = 30 * time.Second

// converse has one conversation after the other with a controller, for as long as it answers: when the host has renewed
// its certificate, the next conversation begins with the new one before the one before ends.
func (c *Client) converse(ctx context.Context, address string) (heard bool, err error) {
	var before *talking
	for {
		t := c.begin(ctx, address)
		select {
		case <-t.answered:
			heard = true
		case <-t.done:
		}
		var denied error // what sent away the one before
		if before != nil {
			before.end()
			if connect.CodeOf(before.err) == connect.CodePermissionDenied {
				denied = before.err
			}
			c.Changed() // the one before may have taken it
		}
		select {
		case <-t.renewed:
		case <-t.done:
		}
		select {
		case <-t.renewed: // also if both are ready
			before = t
		default:
			return heard, cmp.Or(denied, t.err)
		}
	}
}

// talking is a conversation under way.
type talking struct {
	cancel   context.CancelFunc
	answered chan struct{} // closed by the first answer
	renewed  chan struct{} // closed when the host has another certificate; from then on nothing is activated here
	done     chan struct{}
	err      error // when done
}

func (c *Client) begin(ctx context.Context, address string) *talking {
	ctx, cancel := context.WithCancel(ctx)
	t := &talking{cancel: cancel, answered: make(chan struct{}), renewed: make(chan struct{}),
		done: make(chan struct{})}
	go func() {
		defer close(t.done)
		defer cancel()
		t.err = c.talk(ctx, address, t)
	}()
	return t
}

func (t *talking) end() {
	t.cancel()
	<-t.done
}

// renew renews the host's certificate. A failure is no end where the certificate counts still: the controller asks
// again.
func (s *session) renew(q *controllerv1.RenewCertificate) error {
	ctx, cancel := context.WithTimeout(s.ctx, renewTime)
	defer cancel()
	err := func() error {
		csr, err := s.Membership.Request(q.GetSameKey())
		if err != nil {
			return err
		}
		answer, err := s.rpc.RenewHost(ctx, &controllerv1.RenewHostRequest{Csr: csr,
			Now: timestamppb.New(s.Now())})
		if err != nil {
			return because(ctx, err)
		}
		return s.Membership.Renewed(answer.GetIdentity())
	}()
	if err != nil {
		s.Log.Error("renew the host's certificate", "err", err)
		return fmt.Errorf("the host's certificate, which does not count now, is not renewed: %w", err)
	}
	s.Log.Info("the host's certificate was renewed")
	return nil
}
