package live

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"heddle/internal/spec/printable"
)

// Options say which vCenter is read, and as whom.
type Options struct {
	// URL is a host, a host and port, or an https URL of it.
	URL            string
	User, Password string
	// CA is a PEM file of the certificate authorities that are trusted instead of the system's.
	CA string
	// Thumbprint is the SHA-256 of the certificate, in hexadecimal, with or without colons. With it nothing else of the
	// certificate is looked at.
	Thumbprint string
	// Timeout bounds one answer; 0: DefaultTimeout.
	Timeout time.Duration
	// Progress is told how many objects of a kind were read so far.
	Progress func(kind string, n int)

	answer int64 // mostAnswer, or less in a test
}

// DefaultTimeout is how long one answer may take.
const DefaultTimeout = 2 * time.Minute

// farewell is how long a logout may take, after which the session ends by itself at vCenter.
const farewell = 5 * time.Second

// ParseURL is the address of a vCenter's API. It fails for anything but https, and for a user or password within.
func ParseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The error of url.Parse repeats the text, which may have a password.
		return nil, errors.New("this is no URL of a vCenter: write https://vcenter.example")
	case u.User != nil:
		return nil, errors.New("the URL has a user or password, which others would see: use --user and the " +
			"environment, a file or the prompt for the password")
	case u.Scheme != "https":
		return nil, fmt.Errorf("%s://: a vCenter is read by https only", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host: write https://vcenter.example")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/sdk"
	}
	return u, nil
}

// parseThumbprint is the SHA-256 that a thumbprint writes.
func parseThumbprint(text string) ([]byte, error) {
	sum, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(sum) != sha256.Size {
		return nil, errors.New("the thumbprint is not the SHA-256 of a certificate: write 32 bytes in hexadecimal")
	}
	return sum, nil
}

// thumbprint writes the SHA-256 of a certificate as vCenter and browsers do.
func thumbprint(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	words := make([]string, len(sum))
	for i, b := range sum {
		words[i] = fmt.Sprintf("%02X", b)
	}
	return strings.Join(words, ":")
}

// connect logs in. The caller ends the session by the function that it gets.
func connect(ctx context.Context, o Options) (*vim25.Client, func(), error) {
	u, err := ParseURL(o.URL)
	if err != nil {
		return nil, nil, err
	}
	s, err := client(u, o)
	if err != nil {
		return nil, nil, err
	}
	c, err := vim25.NewClient(ctx, s)
	if err != nil {
		return nil, nil, explain(err, u, o.User)
	}
	m := session.NewManager(c)
	if err := m.Login(ctx, url.UserPassword(o.User, o.Password)); err != nil {
		return nil, nil, explain(err, u, o.User)
	}
	return c, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		_ = m.Logout(ctx)
		c.CloseIdleConnections()
	}, nil
}

// client verifies the server, follows nobody elsewhere, and bounds answers.
func client(u *url.URL, o Options) (*soap.Client, error) {
	s := soap.NewClient(u, false)
	transport := s.DefaultTransport()
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.Thumbprint != "" {
		want, err := parseThumbprint(o.Thumbprint)
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = true // the thumbprint is verified instead
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if got := sha256.Sum256(state.PeerCertificates[0].Raw); string(got[:]) != string(want) {
				return fmt.Errorf("its certificate has another thumbprint: %s",
					thumbprint(state.PeerCertificates[0].Raw))
			}
			return nil
		}
	}
	transport.TLSClientConfig, transport.DialTLSContext = config, nil
	if o.CA != "" {
		if err := s.SetRootCAs(o.CA); err != nil {
			return nil, fmt.Errorf("the certificates of %s can't be read: %w", o.CA, err)
		}
	}
	if o.answer == 0 {
		o.answer = mostAnswer
	}
	s.Client.Transport = &bounded{next: transport, answer: o.answer, total: mostTotal}
	s.Timeout = o.Timeout
	if s.Timeout <= 0 {
		s.Timeout = DefaultTimeout
	}
	s.CheckRedirect = func(*http.Request, []*http.Request) error {
		return errors.New("it sends us to another address: give that of the vCenter itself")
	}
	return s, nil
}

// explain says what to do about an error of vCenter. It has no password: govmomi's errors have none.
func explain(err error, u *url.URL, user string) error {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted) && len(untrusted.UnverifiedCertificates) > 0:
		return fmt.Errorf("the certificate of %s is not trusted (%w). Give its authority by --ca FILE. Or compare its "+
			"SHA-256 thumbprint with the one that vCenter shows, and give it by --thumbprint: %s", u.Host,
			untrusted.Err, thumbprint(untrusted.UnverifiedCertificates[0].Raw))
	case soap.IsSoapFault(err):
		fault := soap.ToSoapFault(err)
		switch fault.VimFault().(type) {
		case types.InvalidLogin, *types.InvalidLogin:
			return fmt.Errorf("%s does not let in user %s: the name or the password is wrong", u.Host,
				printable.Short(user, 100))
		case types.NoPermission, *types.NoPermission:
			return fmt.Errorf("user %s may not read %s: give it the role Read-only on the vCenter, with all children",
				printable.Short(user, 100), u.Host)
		}
		return fmt.Errorf("%s answers: %s", u.Host, printable.Short(fault.String, 300))
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		return fmt.Errorf("vCenter %s gave no whole answer in time: try again, or with a longer --timeout", u.Host)
	}
	return fmt.Errorf("reading vCenter %s: %s", u.Host, printable.Short(err.Error(), 500))
}
