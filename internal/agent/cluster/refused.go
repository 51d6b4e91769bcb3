package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
)

// whyTime bounds how long a controller may take to say why it refuses the host.
const whyTime = 10 * time.Second

// explain says why a controller refuses the host. In the handshake it says no more than that it does: it is asked for
// its reason by a connection without a certificate.
func (c *Client) explain(ctx context.Context, address string, err error) error {
	if connect.CodeOf(err) == connect.CodePermissionDenied {
		c.denied = err.Error()
		return err
	}
	if identity.RefusedByPeer(err) {
		err = c.refusal(ctx, address, err)
		c.refused = err.Error()
		return err
	}
	if err != nil && c.refused != "" { // others may not even answer
		return fmt.Errorf("%w; before, another one answered: %s", err, c.refused)
	}
	return err
}

// refusal says why the controller at an address refused the certificate of this host.
func (c *Client) refusal(ctx context.Context, address string, err error) error {
	why, asked := c.why(ctx, address)
	switch fault := why.GetFault(); {
	case c.denied != "" && (asked != nil || fault != ""):
		if asked == nil {
			c.denied = why.GetWhy() // it may be another reason by now
		}
		return fmt.Errorf("the controller refuses this host: %s", c.denied)
	case asked != nil:
		return fmt.Errorf("the controller refuses the certificate of this host, and its log says why (%w)", err)
	case fault == "":
		return fmt.Errorf("the controller refused the certificate of this host, and would take it now (%w)", err)
	case fault == identity.Revoked.String():
		return fmt.Errorf("the controller refuses the certificate of this host: %s; a host that was taken out of its "+
			"cluster leaves it (heddle host leave) and may join again", why.GetWhy())
	}
	return fmt.Errorf("the controller refuses the certificate of this host: %s", why.GetWhy())
}

// why asks the controller at an address why it refuses the host's certificate.
func (c *Client) why(ctx context.Context, address string) (*controllerv1.ExplainRefusalResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, whyTime)
	defer cancel()
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	conf := transport.TLSClientConfig
	if conf.GetClientCertificate == nil {
		return nil, errors.New("this host shows no certificate")
	}
	own, err := conf.GetClientCertificate(&tls.CertificateRequestInfo{})
	if err != nil {
		return nil, err
	}
	conf.GetClientCertificate = nil
	rpc := controllerv1connect.NewHostServiceClient(connect.NewClient(connecthttp.NewTransport(
		&http.Client{Transport: transport}, "https://"+address, connecthttp.WithReadMaxBytes(maxMessage),
		connecthttp.WithCompressors())))
	return rpc.ExplainRefusal(ctx, &controllerv1.ExplainRefusalRequest{Certificates: own.Certificate})
}
