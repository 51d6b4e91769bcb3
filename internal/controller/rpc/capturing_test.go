package rpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api/lookscope"
)

// enveloped is one message of a stream in JSON.
func enveloped(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

// Who has begun a capture of their own port group ends it, and so does whoever may capture there; others may not, and a
// number that nobody has begun by this controller may be anybody's.
func TestCapture_IsEndedByThoseWhoMayCaptureThere(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	m := f.joins("esx1")
	over := make(chan struct{})
	m.calls = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != agentv1connect.CaptureServiceCaptureProcedure {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
			return
		}
		w.Header().Set("Content-Type", "application/connect+json")
		_, _ = w.Write(enveloped(`{"started":{"id":"7"}}`))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	m.start()
	f.await("it is up", func() bool { return f.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	m.reports(&controllerv1.HostPort{Switch: "dvs", Name: "w1", PortGroup: "web", Mac: "52:54:00:00:00:01"})
	f.await("the port is known", func() bool { return len(f.ports()) == 1 })
	capture := controllerv1.AccessRole_ACCESS_ROLE_CAPTURE
	ann, _ := f.scoped("ann", capture, "dvs/web")
	bob, _ := f.scoped("bob", capture, "dvs/web")
	db, _ := f.scoped("db", capture, "dvs/db")
	val, _ := f.scoped("val", controllerv1.AccessRole_ACCESS_ROLE_VIEWER, "dvs/web")

	q, err := protojson.Marshal(&agentv1.CaptureRequest{Ports: []string{"w1"}})
	if err != nil {
		t.Fatal(err)
	}
	at := "https://" + f.address + "/hosts/esx1"
	answer := must(ann.http.Post(at+agentv1connect.CaptureServiceCaptureProcedure, "application/connect+json",
		bytes.NewReader(enveloped(string(q)))))(t)
	defer answer.Body.Close()
	if _, err := io.ReadFull(answer.Body, make([]byte, len(enveloped(`{"started":{"id":"7"}}`)))); err != nil ||
		answer.StatusCode != http.StatusOK {
		t.Fatalf("the capture: %s, %v", answer.Status, err)
	}
	for _, row := range []struct {
		name string
		who  *person
		id   string
		want int
	}{
		{"who began it", ann, "7", http.StatusOK},
		{"who may capture there", bob, "7", http.StatusOK},
		{"who may capture elsewhere", db, "7", http.StatusForbidden},
		{"who may only look", val, "7", http.StatusForbidden},
		{"another capture", ann, "8", http.StatusForbidden},
	} {
		t.Run(row.name, func(t *testing.T) {
			resp := must(row.who.http.Post(at+agentv1connect.CaptureServiceEndCaptureProcedure, "application/json",
				strings.NewReader(`{"id":"`+row.id+`"}`)))(t)
			text, err := io.ReadAll(resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != row.want {
				t.Errorf("%s %s, %v", resp.Status, text, err)
			}
		})
	}
	close(over)
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Errorf("the capture's end: %v", err)
	}
}

// The host is told which port groups were judged for who may capture some alone, whatever they say themselves; who may
// capture everywhere is held against none.
func TestS117_AHostIsToldWhatWasJudged(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	m := f.joins("esx1")
	judged := make(chan string, 1)
	m.calls = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		judged <- r.Header.Get(lookscope.Header)
		w.Header().Set("Content-Type", "application/connect+json")
		_, _ = w.Write([]byte("\x02\x00\x00\x00\x02{}")) // the end of a stream
	})
	m.start()
	f.await("it is up", func() bool { return f.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
	m.reports(&controllerv1.HostPort{Switch: "dvs", Name: "w1", PortGroup: "web", Mac: "52:54:00:00:00:01"})
	f.await("the port is known", func() bool { return len(f.ports()) == 1 })
	const role = controllerv1.AccessRole_ACCESS_ROLE_CAPTURE
	web, _ := f.scoped("web", role, "dvs/web", "dvs/db")
	wanted := must(lookscope.Text([]lookscope.Group{{Switch: "dvs", PortGroup: "web"}}))(t)
	lie := must(lookscope.Text([]lookscope.Group{{Switch: "dvs", PortGroup: "db"}}))(t)
	q := must(protojson.Marshal(&agentv1.CaptureRequest{Ports: []string{"w1"}}))(t)
	for name, row := range map[string]struct {
		who  *person
		want string
	}{"a part": {web, wanted}, "all": {f.admin(), ""}} {
		t.Run(name, func(t *testing.T) {
			r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+f.address+"/hosts/esx1"+
				agentv1connect.CaptureServiceCaptureProcedure, bytes.NewReader(enveloped(string(q)))))(t)
			r.Header.Set("Content-Type", "application/connect+json")
			r.Header.Set(lookscope.Header, lie)
			resp := must(row.who.http.Do(r))(t)
			defer resp.Body.Close()
			text := must(io.ReadAll(resp.Body))(t)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%s %s", resp.Status, text)
			}
			if got := <-judged; got != row.want {
				t.Errorf("the host is told %q, want %q", got, row.want)
			}
		})
	}
}
