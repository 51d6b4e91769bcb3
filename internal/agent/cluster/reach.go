package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// askTime is how long the controller of the conversation may take to answer, before all are asked by connections of
// their own: a connection may have ended with the way that it took, while a new one finds another.
const askTime = 2 * time.Second

// Reach returns nil when a controller of the cluster answers: the one of the conversation, or else any.
func (c *Client) Reach(ctx context.Context) error {
	if rpc := c.present.Load(); rpc != nil {
		soon, cancel := context.WithTimeout(ctx, askTime)
		err := ping(soon, *rpc)
		cancel()
		if err == nil {
			return nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list := c.Membership.Controllers()
	answers := make(chan error, len(list))
	for _, address := range list {
		go func() { answers <- c.reachAt(ctx, address) }()
	}
	var errs []error
	for range list {
		err := <-answers
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Repair puts a controller of the host's cluster at the head of those that it knows: the addresses of all of them may
// be others by now. Nothing is changed where nobody answers there who is one of them and takes the host.
func (r *Record) Repair(ctx context.Context, controller string) error {
	if err := checkAddress(controller); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if err := New(Options{Membership: r}).reachAt(ctx, controller); err != nil {
		return err
	}
	others := slices.DeleteFunc(r.Controllers(), func(at string) bool { return at == controller })
	return r.KeepControllers(append([]string{controller}, others...))
}

// reachAt asks the controller at an address by a connection of its own.
func (c *Client) reachAt(ctx context.Context, address string) error {
	to, hangUp, err := c.dial(address)
	if err != nil {
		return err
	}
	defer hangUp()
	if err := ping(ctx, controllerv1connect.NewHostServiceClient(to)); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

// ping asks for a sign of life. A controller that is too old to know the question has answered all the same.
func ping(ctx context.Context, rpc controllerv1connect.HostServiceClient) error {
	_, err := rpc.PingController(ctx, &controllerv1.PingControllerRequest{})
	if connect.CodeOf(err) == connect.CodeUnimplemented {
		return nil
	}
	return err
}
