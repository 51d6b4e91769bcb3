package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
)

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

// Join makes the host part of a cluster, and keeps that in dir. The key is made here and does not leave the host.
func Join(ctx context.Context, dir string, q Request) (*Record, error) {
	key, id, err := ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return Keep(dir, key, id)
}

// JoinInMemory makes a simulated host part of a cluster: its record is in no file.
func JoinInMemory(ctx context.Context, q Request) (*Record, error) {
	key, id, err := ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return record("", key, id)
}

// ask asks a controller to let a host in, by a new key.
func ask(ctx context.Context, q Request) (none identity.Key, _ *controllerv1.HostIdentity, _ error) {
	if _, _, err := net.SplitHostPort(q.Controller); err != nil {
		return none, nil, fmt.Errorf("%q is no address of a controller: give HOST:PORT", q.Controller)
	}
	token, err := identity.ParseJoinToken(q.Token)
	if err != nil {
		return none, nil, err
	}
	key, err := identity.NewKey()
	if err != nil {
		return none, nil, err
	}
	csr, err := key.Request()
	if err != nil {
		return none, nil, err
	}
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
		var said *connect.Error
		if errors.As(err, &said) && connect.CodeOf(err) != connect.CodeUnavailable {
			return none, nil, fmt.Errorf("the controller refuses: %s", said.Message())
		}
		return none, nil, fmt.Errorf("ask the controller at %s: %w", q.Controller, err)
	}
	return key, answer.GetIdentity(), nil
}
