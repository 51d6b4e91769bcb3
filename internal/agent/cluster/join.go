package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/host/keystore"
	"heddle/internal/identity"
)

// answerTime bounds how long a host waits for the controller that lets it in: less than the 30 s that a command waits
// for the agent, so that the command can say who has not answered.
const answerTime = 25 * time.Second

// Request says which cluster a host joins, and by what right.
type Request struct {
	// Controller is HOST:PORT.
	Controller string
	Token      string
	Name       string
	Replace    bool
	// Dial makes the connection; nil for one from whatever address of the host.
	Dial Dial
}

// Join makes the host part of a cluster, and keeps that in dir. The key is made here and does not leave the host. It is
// on disk before the controller is asked, so that a join of which the answer was lost can be repeated.
func Join(ctx context.Context, dir string, q Request) (*Record, error) {
	token, err := q.check()
	if err != nil {
		return nil, err
	}
	store, err := keystore.Open(filepath.Join(dir, directory))
	if err != nil {
		return nil, err
	}
	key, err := store.NextKey()
	if err != nil {
		return nil, err
	}
	id, err := q.ask(ctx, token, key)
	if err != nil {
		return nil, err
	}
	return &Record{dir: store, id: id}, store.Save(id)
}

// failed is why a host has not joined, for people: what, where, and what to do.
func (q *Request) failed(ctx context.Context, err error) error {
	code, why := connect.CodeOf(err), err.Error()
	var said *connect.Error
	if errors.As(err, &said) {
		why = said.Message()
	}
	var token *identity.TokenError
	switch {
	case errors.As(err, &token):
		return fmt.Errorf("the controller at %s: %w", q.Controller, token)
	case ctx.Err() != nil || code == connect.CodeDeadlineExceeded || code == connect.CodeCanceled:
		return fmt.Errorf("no controller has answered at %s: give an address at which a controller of the cluster "+
			"takes hosts (its --listen, port 7411), and see that it runs and that no firewall is in between; repeat "+
			"the command, with the same token", q.Controller)
	case code == connect.CodeUnavailable:
		return fmt.Errorf("no controller answers at %s (%s): give an address at which a controller of the cluster "+
			"takes "+
			"hosts (its --listen, port 7411), and see that it runs and that no firewall is in between",
			q.Controller, why)
	case said == nil || code == connect.CodeUnimplemented || code == connect.CodeUnknown:
		return fmt.Errorf("%s is not where controllers take hosts (%s): give the address of --listen, port 7411",
			q.Controller, why)
	}
	return fmt.Errorf("the controller refuses: %s", why)
}

// JoinInMemory makes a simulated host part of a cluster: its record is in no file.
func JoinInMemory(ctx context.Context, q Request) (*Record, error) {
	token, err := q.check()
	if err != nil {
		return nil, err
	}
	key, err := identity.NewKey()
	if err != nil {
		return nil, err
	}
	id, err := q.ask(ctx, token, key)
	return &Record{id: id}, err
}

// check reads what a user wrote.
func (q *Request) check() (token identity.JoinToken, err error) {
	if err := checkAddress(q.Controller); err != nil {
		return token, err
	}
	return identity.ParseJoinToken(q.Token)
}

func checkAddress(controller string) error {
	if _, _, err := net.SplitHostPort(controller); err != nil {
		return fmt.Errorf("%q is no address of a controller: give HOST:PORT", controller)
	}
	return nil
}

// ask asks a controller to let the host in by that key.
func (q *Request) ask(ctx context.Context, token identity.JoinToken, key identity.Key) (*keystore.Identity, error) {
	csr, err := key.Request()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	transport := &http.Transport{TLSClientConfig: identity.JoinTLS(token, identity.NewClock(time.Now)),
		TLSHandshakeTimeout: dialTime, Protocols: protocols, DialContext: q.Dial}
	defer transport.CloseIdleConnections()
	rpc := connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: transport}, "https://"+q.Controller,
		connecthttp.WithReadMaxBytes(maxMessage), connecthttp.WithCompressors()))
	answer, err := controllerv1connect.NewHostServiceClient(rpc).JoinHost(ctx, &controllerv1.JoinHostRequest{
		Token: q.Token, Name: q.Name, Csr: csr, Replace: q.Replace})
	if err != nil {
		return nil, q.failed(ctx, err)
	}
	id, err := identityOf(key, answer.GetIdentity())
	if err != nil {
		return nil, fmt.Errorf("the controller's answer: %w", err)
	}
	return id, nil
}
