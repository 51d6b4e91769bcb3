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
}

// Join makes the host part of a cluster, and keeps that in dir. The key is made here and does not leave the host.
func Join(ctx context.Context, dir string, q Request) (*Record, error) {
	if _, _, err := net.SplitHostPort(q.Controller); err != nil {
		return nil, fmt.Errorf("%q is no address of a controller: give HOST:PORT", q.Controller)
	}
	token, err := identity.ParseJoinToken(q.Token)
	if err != nil {
		return nil, err
	}
	key, err := identity.NewKey()
	if err != nil {
		return nil, err
	}
	csr, err := key.Request()
	if err != nil {
		return nil, err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	transport := &http.Transport{TLSClientConfig: identity.JoinTLS(token, identity.NewClock(time.Now)),
		TLSHandshakeTimeout: dialTime, Protocols: protocols}
	defer transport.CloseIdleConnections()
	rpc := connect.NewClient(connecthttp.NewTransport(&http.Client{Transport: transport}, "https://"+q.Controller,
		connecthttp.WithReadMaxBytes(maxMessage), connecthttp.WithCompressors()))
	answer, err := controllerv1connect.NewHostServiceClient(rpc).JoinHost(ctx, &controllerv1.JoinHostRequest{
		Token: q.Token, Name: q.Name, Csr: csr, Replace: q.Replace})
	if err != nil {
		var said *connect.Error
		if errors.As(err, &said) && connect.CodeOf(err) != connect.CodeUnavailable {
			return nil, fmt.Errorf("the controller refuses: %s", said.Message())
		}
		return nil, fmt.Errorf("ask the controller at %s: %w", q.Controller, err)
	}
	return Keep(dir, key, answer.GetIdentity())
}
