package rpc

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// A capture that runs ends when its token is revoked, when its person signs out, and when the grant by which it
// was begun is withdrawn; it ends at the host as well, and the audit log says so. Those of others go on.
func TestAccess_ALongCallEndsWithItsToken(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	m := f.joins("esx1")
	const started = `{"started":{"id":"7"}}`
	left := make(chan struct{}, 8)
	m.calls = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != agentv1connect.CaptureServiceCaptureProcedure {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/connect+json")
		_, _ = w.Write(enveloped(started))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	})
	m.start()
	f.await("it is up", func() bool { return f.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	m.reports(&controllerv1.HostPort{Switch: "dvs", Name: "w1", PortGroup: "web", Mac: "52:54:00:00:00:01"})
	f.await("the port is known", func() bool { return len(f.ports()) == 1 })
	q := must(protojson.Marshal(&agentv1.CaptureRequest{Ports: []string{"w1"}}))(t)
	// begins has somebody capture, and returns what has the rest of the answer, once it is over.
	begins := func(p *person) <-chan string {
		answer := must(p.http.Post("https://"+f.address+"/hosts/esx1"+agentv1connect.CaptureServiceCaptureProcedure,
			"application/connect+json", bytes.NewReader(enveloped(string(q)))))(t)
		t.Cleanup(func() { _ = answer.Body.Close() })
		if _, err := io.ReadFull(answer.Body, make([]byte, len(enveloped(started)))); err != nil ||
			answer.StatusCode != http.StatusOK {
			t.Fatalf("the capture: %s, %v", answer.Status, err)
		}
		rest := make(chan string, 1)
		go func() {
			text, _ := io.ReadAll(answer.Body) // what ends it may be an error
			rest <- string(text)
		}()
		return rest
	}
	capture, viewer := controllerv1.AccessRole_ACCESS_ROLE_CAPTURE, controllerv1.AccessRole_ACCESS_ROLE_VIEWER
	other, _ := f.scoped("other", capture, "dvs/web")
	goesOn := begins(other)
	admin := f.admin()
	granted := func(p *person, n int) {
		f.await("the grants count", func() bool {
			return len(must(p.access.WhoAmI(t.Context(), &controllerv1.WhoAmIRequest{}))(t).GetGrants()) == n
		})
	}
	for _, row := range []struct {
		name string
		// begin returns who captures, and what ends that.
		begin func() (p *person, end func() error)
	}{
		{"revoked", func() (*person, func() error) {
			p, id := f.scoped("revoked", capture, "dvs/web")
			return p, func() error {
				_, err := admin.access.RevokeAPIToken(t.Context(), &controllerv1.RevokeAPITokenRequest{Id: id})
				return err
			}
		}},
		{"signed out", func() (*person, func() error) {
			p := f.signedIn("signed out")
			must(admin.access.CreateGrant(t.Context(), &controllerv1.CreateGrantRequest{Role: capture,
				Who: &controllerv1.Grantee{Kind: controllerv1.GranteeKind_GRANTEE_KIND_PERSON, Name: "signed out"}}))(t)
			granted(p, 1)
			return p, func() error {
				_, err := p.access.SignOut(t.Context(), &controllerv1.SignOutRequest{})
				return err
			}
		}},
		{"withdrawn", func() (*person, func() error) {
			p, id := f.scoped("withdrawn", viewer, "dvs/web")
			grant := must(admin.access.CreateGrant(t.Context(), &controllerv1.CreateGrantRequest{Role: capture,
				Who: &controllerv1.Grantee{Kind: controllerv1.GranteeKind_GRANTEE_KIND_TOKEN, Name: id}}))(t).GetGrant()
			granted(p, 2)
			return p, func() error {
				_, err := admin.access.RevokeGrant(t.Context(), &controllerv1.RevokeGrantRequest{Id: grant.GetId()})
				return err
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, end := row.begin()
			rest := begins(p)
			if err := end(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-rest:
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			<-left
			f.await("it is recorded", func() bool {
				return slices.ContainsFunc(f.audited(), func(line string) bool {
					return strings.HasPrefix(line, row.name+" Capture FAILED")
				})
			})
		})
	}
	select {
	case text := <-goesOn:
		t.Errorf("another's capture ended: %s", text)
	default:
	}
}

// signedIn is somebody who has signed in, as if by an identity provider.
func (f *front) signedIn(name string) *person {
	f.t.Helper()
	token, record := pki.NewSignIn(name, "https://idp.example", nil, day, f.now())
	if _, err := f.Store.Write(f.t.Context(), []store.Change{{Key: store.Key{Kind: tokens.Kind,
		Name: string(token.ID)}, Doc: must(record.Encode())(f.t), IfVersion: store.New}}); err != nil {
		f.t.Fatal(err)
	}
	return f.with("Bearer " + token.Text())
}
