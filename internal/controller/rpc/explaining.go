package rpc

import (
	"context"
	"crypto/x509"
	"errors"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
)

// ExplainRefusal says why this controller refuses a certificate. It is for the host that has it: nobody else has seen
// it, and what is said of it is nothing that its owner may not know.
func (s *Server) ExplainRefusal(_ context.Context, q *controllerv1.ExplainRefusalRequest) (
	*controllerv1.ExplainRefusalResponse, error) {
	var shown []*x509.Certificate
	for _, der := range q.GetCertificates() {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, connect.NewError(connect.CodeInvalidArgument, "these are no certificates: "+err.Error())
		}
		shown = append(shown, c)
	}
	_, err := s.TLS.Shown(shown)
	var fault *identity.PeerError
	switch {
	case err == nil:
		return &controllerv1.ExplainRefusalResponse{}, nil
	case errors.As(err, &fault):
		return &controllerv1.ExplainRefusalResponse{Fault: fault.Fault.String(), Why: err.Error()}, nil
	}
	return nil, err
}
