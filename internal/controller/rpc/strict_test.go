package rpc

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"heddle/internal/api"
)

// posted is what a server answers to a JSON request: the status, and the code and the message of the error.
type posted struct {
	status        int
	Code, Message string
	Details       []struct{ Type string }
}

// posts sends a request of a call that is answered once, or by a stream.
func posts(t *testing.T, url string, m protoreflect.MethodDescriptor, kind string, body []byte) (p posted) {
	t.Helper()
	return postsBy(t, http.DefaultClient, url, m, kind, body)
}

// postsBy does it by a client.
func postsBy(t *testing.T, client *http.Client, url string, m protoreflect.MethodDescriptor, kind string,
	body []byte) (p posted) {
	t.Helper()
	content := "application/" + kind
	if m.IsStreamingServer() {
		content = "application/connect+" + kind
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	resp := must(client.Post(url+"/"+string(m.Parent().FullName())+"/"+string(m.Name()), content,
		bytes.NewReader(body)))(t)
	defer resp.Body.Close()
	text := must(io.ReadAll(resp.Body))(t)
	if m.IsStreamingServer() { // the end of the stream has the error
		var end struct{ Error posted }
		if len(text) < 5 || json.Unmarshal(text[5:], &end) != nil {
			t.Fatalf("%s answers %s %q", m.FullName(), resp.Status, text)
		}
		return end.Error
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s answers %s %q", m.FullName(), resp.Status, text)
	}
	p.status = resp.StatusCode
	return p
}

// misspelt are requests with one field by a wrong name, for each field of a message and of those in it: what its
// absence means would otherwise be done. What holds each is the message around it.
func misspelt(m protoreflect.MessageDescriptor, hold string, inside []protoreflect.FullName) (list []string) {
	if slices.Contains(inside, m.FullName()) || strings.HasPrefix(string(m.FullName()), "google.") {
		return nil
	}
	inside = append(slices.Clone(inside), m.FullName())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		name := f.JSONName()
		for _, wrong := range []string{name + "s", name[:len(name)-1], strings.ToLower(name)} {
			if wrong != "" && m.Fields().ByJSONName(wrong) == nil && m.Fields().ByTextName(wrong) == nil {
				list = append(list, fmt.Sprintf(hold, fmt.Sprintf(`{"%s":null}`, wrong)))
			}
		}
		if f.Message() == nil || f.IsMap() {
			continue
		}
		around := fmt.Sprintf(`{"%s":%%s}`, name)
		if f.IsList() {
			around = fmt.Sprintf(`{"%s":[%%s]}`, name)
		}
		list = append(list, misspelt(f.Message(), fmt.Sprintf(hold, around), inside)...)
	}
	return list
}

// Each field of each request of the controllers, by a name that is almost right, is refused by whichever way in: a dry
// run that is misspelt is no change, and a scope that is misspelt no token for the whole cluster.
func TestS134_ARequestWithAMisspeltFieldIsRefused(t *testing.T) {
	c := newController(t)
	people := httptest.NewServer(Front{c.Server}.People())
	t.Cleanup(people.Close)
	hosts := httptest.NewServer(c.Hosts())
	t.Cleanup(hosts.Close)
	seen := 0
	protoregistry.GlobalFiles.RangeFilesByPackage("heddle.controller.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			at := people
			if s.Name() == "HostService" || s.Name() == "ControllerService" {
				at = hosts
			}
			for k := range s.Methods().Len() {
				m := s.Methods().Get(k)
				if m.IsStreamingClient() {
					continue // of hosts, which speak protobuf and may be newer than their controller
				}
				for _, body := range misspelt(m.Input(), "%s", nil) {
					seen++
					p := posts(t, at.URL, m, "json", []byte(body))
					if p.Code != "invalid_argument" || !strings.Contains(p.Message, "unknown field") {
						t.Errorf("%s %s: %+v", m.FullName(), body, p)
					}
				}
			}
		}
		return true
	})
	if seen < 200 {
		t.Errorf("%d requests were tried: this test looks in the wrong place", seen)
	}
	apply := must(protoregistry.GlobalFiles.FindDescriptorByName(
		"heddle.controller.v1.FleetService.ApplyDefinition"))(t).(protoreflect.MethodDescriptor)
	later := protowire.AppendVarint(protowire.AppendTag(nil, 900, protowire.VarintType), 1)
	if p := posts(t, people.URL, apply, "proto", later); p.Code != "invalid_argument" {
		t.Errorf("a field of a later version: %+v", p)
	}
	if revision := must(c.revision())(t); revision > 1 {
		t.Errorf("the definition is at revision %d", revision)
	}
}

// A failed call has the contract's Error among its details, and a request for another version of it is refused with a
// code and a message.
func TestS134_AnErrorHasCodeMessageAndDetails(t *testing.T) {
	c := newController(t)
	at := httptest.NewServer(Front{c.Server}.People())
	t.Cleanup(at.Close)
	remove := must(protoregistry.GlobalFiles.FindDescriptorByName(
		"heddle.controller.v1.FleetService.RemoveHost"))(t).(protoreflect.MethodDescriptor)
	p := posts(t, at.URL, remove, "json", []byte(`{"name":"esx9"}`))
	if p.Code != "not_found" || len(p.Details) != 1 || p.Details[0].Type != "heddle.agent.v1.Error" {
		t.Errorf("it is answered %+v", p)
	}
	q := must(http.NewRequest(http.MethodPost, at.URL+"/heddle.controller.v1.FleetService/RemoveHost",
		strings.NewReader(`{"name":"esx9"}`)))(t)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set(api.VersionHeader, fmt.Sprint(api.Version+1))
	resp := must(http.DefaultClient.Do(q))(t)
	defer resp.Body.Close()
	var other posted
	err := json.NewDecoder(resp.Body).Decode(&other)
	if err != nil || resp.StatusCode != http.StatusUnprocessableEntity || other.Code != "invalid_argument" ||
		!strings.Contains(other.Message, "this controller speaks version") ||
		resp.Header.Get(api.VersionHeader) != fmt.Sprint(api.Version) {
		t.Errorf("for another version it answers %s %+v, %v", resp.Status, other, err)
	}
}
