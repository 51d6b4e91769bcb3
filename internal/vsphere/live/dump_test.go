package live

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"heddle/internal/spec"
	"heddle/internal/vsphere"
)

const (
	labDump  = "../testdata/lab.json"
	user     = "reader@vsphere.local"
	password = "a secret & <more>"
)

// simulatedSwitch is a switch of govmomi's simulator that keeps what the simulator drops: the type, and all settings.
type simulatedSwitch struct {
	mo.VmwareDistributedVirtualSwitch
	ports []types.DistributedVirtualPort
}

// FetchDVPorts answers by keys, as vCenter does.
func (s *simulatedSwitch) FetchDVPorts(_ *simulator.Context, q *types.FetchDVPorts) soap.HasFault {
	r := &types.FetchDVPortsResponse{}
	for _, p := range s.ports {
		for _, key := range q.Criteria.PortKey {
			if p.Key == key {
				r.Returnval = append(r.Returnval, p)
			}
		}
	}
	return &methods.FetchDVPortsBody{Res: r}
}

// lab is the inventory of the dump.
type lab struct {
	sw     simulatedSwitch
	more   []*simulatedSwitch
	groups []*mo.DistributedVirtualPortgroup
	hosts  []*mo.HostSystem
}

// readLab reads the dump of the tests into objects of the API.
func readLab(t testing.TB) *lab {
	t.Helper()
	text, err := os.ReadFile(labDump)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{}
	var raw []json.RawMessage
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var one json.RawMessage
		if err := d.Decode(&one); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if one[0] == '[' {
			var list []json.RawMessage
			if err := json.Unmarshal(one, &list); err != nil {
				t.Fatal(err)
			}
			raw = append(raw, list...)
			continue
		}
		raw = append(raw, one)
	}
	for _, one := range raw {
		l.add(t, one)
	}
	return l
}

func (l *lab) add(t testing.TB, one json.RawMessage) {
	t.Helper()
	decode := func(text []byte, to any) {
		t.Helper()
		if err := types.NewJSONDecoder(bytes.NewReader(text)).Decode(to); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	var o struct {
		Self   types.ManagedObjectReference `json:"self"`
		Name   string                       `json:"name"`
		Config json.RawMessage              `json:"config"`
		Port   json.RawMessage              `json:"port"`
	}
	if err := json.Unmarshal(one, &o); err != nil {
		t.Fatal(err)
	}
	switch o.Self.Type {
	case "VmwareDistributedVirtualSwitch":
		config := &types.VMwareDVSConfigInfo{}
		decode(o.Config, config)
		l.sw.Self, l.sw.Name, l.sw.Config = o.Self, o.Name, config
	case "DistributedVirtualPortgroup":
		g := &mo.DistributedVirtualPortgroup{}
		decode(o.Config, &g.Config)
		g.Self, g.Name = o.Self, o.Name
		l.groups = append(l.groups, g)
	case "HostSystem":
		h := &mo.HostSystem{Config: &types.HostConfigInfo{}}
		decode(o.Config, h.Config)
		h.Self, h.Name = o.Self, o.Name
		l.hosts = append(l.hosts, h)
	default:
		decode(o.Port, &l.sw.ports)
	}
}

// stand starts a simulated vCenter with the inventory, and says how to read it.
func stand(t testing.TB, l *lab) (*simulator.Server, Options) {
	t.Helper()
	m := simulator.VPX()
	m.Datacenter, m.Cluster, m.Host, m.Machine, m.Portgroup = 1, 0, 0, 0, 0
	if err := m.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Remove)
	ctx := m.Service.Context
	all := ctx.Map
	for _, kind := range []string{"DistributedVirtualPortgroup", "DistributedVirtualSwitch",
		"VmwareDistributedVirtualSwitch"} {
		for _, o := range all.All(kind) {
			all.Remove(ctx, o.Reference())
		}
	}
	dc := all.All("Datacenter")[0].(*simulator.Datacenter)
	network := all.Get(dc.NetworkFolder).(*simulator.Folder)
	hosts := all.Get(dc.HostFolder).(*simulator.Folder)
	put := func(in *simulator.Folder, o mo.Reference) {
		all.Put(o)
		in.ChildEntity = append(in.ChildEntity, o.Reference())
	}
	l.sw.Parent = &network.Self
	put(network, &l.sw)
	for _, s := range l.more {
		s.Parent = &network.Self
		put(network, s)
	}
	for _, g := range l.groups {
		g.Parent = &network.Self
		put(network, g)
	}
	for _, h := range l.hosts {
		h.Parent = &hosts.Self
		put(hosts, h)
	}
	m.Service.Listen = &url.URL{Scheme: "https", Host: "127.0.0.1:0", User: url.UserPassword(user, password)}
	m.Service.TLS = &tls.Config{}
	s := m.Service.NewServer()
	t.Cleanup(s.Close)
	return s, Options{URL: "https://" + s.URL.Host, User: user, Password: password,
		Thumbprint: thumbprint(s.TLS.Certificates[0].Certificate[0])}
}

// The import of what is read live is that of a dump of the same inventory, to the last note.
func TestDump_ImportsAsADumpOfTheSameInventory(t *testing.T) {
	_, o := stand(t, readLab(t))
	var dump bytes.Buffer
	if err := Dump(t.Context(), o, &dump); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(labDump)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var live, file vsphere.Inventory
	if err := live.Read("live", &dump); err != nil {
		t.Fatal(err)
	}
	if err := file.Read("file", f); err != nil {
		t.Fatal(err)
	}
	q := vsphere.Options{HostPorts: true}
	got, err := live.Translate(q)
	if err != nil {
		t.Fatal(err)
	}
	want, err := file.Translate(q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Hosts != 2 || got.PortGroups != 3 || got.LAGs != 1 || got.HostPorts != 1 {
		t.Errorf("it read %d hosts, %d port groups, %d LAGs, %d host ports", got.Hosts, got.PortGroups, got.LAGs,
			got.HostPorts)
	}
	a, _ := spec.FormatDefinition(got.Definition)
	b, _ := spec.FormatDefinition(want.Definition)
	if !bytes.Equal(a, b) {
		t.Errorf("live it is\n%s\nof the dump\n%s", a, b)
	}
	if !reflect.DeepEqual(got.Notes, want.Notes) {
		t.Errorf("live it notes %+v, of the dump %+v", got.Notes, want.Notes)
	}
}

// What a user can get wrong is said with what to do, and no error has the password.
func TestDump_SaysWhatIsWrong(t *testing.T) {
	s, right := stand(t, readLab(t))
	file := filepath.Join(t.TempDir(), "ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.TLS.Certificates[0].Certificate[0]})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	byCA := right
	byCA.CA, byCA.Thumbprint = file, ""
	if err := Dump(t.Context(), byCA, io.Discard); err != nil {
		t.Errorf("by its authority: %v", err)
	}
	for _, c := range []struct {
		about, want string
		change      func(*Options)
	}{
		{"another password", "does not let in user " + user, func(o *Options) { o.Password = "Other-Secret" }},
		{"no trust", "by --thumbprint: " + right.Thumbprint, func(o *Options) { o.Thumbprint = "" }},
		{"another certificate", "another thumbprint: " + right.Thumbprint, func(o *Options) {
			o.Thumbprint = strings.Repeat("ab", 32)
		}},
		{"no thumbprint", "not the SHA-256", func(o *Options) { o.Thumbprint = "sha1" }},
		{"no such file", "nowhere.pem", func(o *Options) { o.CA = "nowhere.pem" }},
		{"plain text", "by https only", func(o *Options) { o.URL = "http://" + s.URL.Host }},
		{"a password in the URL", "has a user or password", func(o *Options) {
			o.URL = "https://a:Other-Secret@" + s.URL.Host
		}},
		{"no URL", "no URL", func(o *Options) { o.URL = "https://a:Other-Secret@%zz" }},
	} {
		o := right
		c.change(&o)
		err := Dump(t.Context(), o, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.about, err)
		}
		if err != nil && (strings.Contains(err.Error(), "Other-Secret") || strings.Contains(err.Error(), password)) {
			t.Errorf("%s: the error has the password: %v", c.about, err)
		}
	}
}

// front stands before a vCenter, and may answer in its place.
func front(t *testing.T, o *Options, s *simulator.Server, serve func(http.ResponseWriter, string) bool) {
	t.Helper()
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: s.URL.Host})
	behind.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	f := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		if err != nil || serve(w, string(text)) {
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(text))
		behind.ServeHTTP(w, q)
	}))
	t.Cleanup(f.Close)
	o.URL, o.Thumbprint = f.URL, thumbprint(f.Certificate().Raw)
}

const envelope = `<?xml version="1.0"?><soapenv:Envelope ` +
	`xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>`

// A vCenter that goes away, has no end or sends us elsewhere ends the reading with an error.
func TestDump_EndsWithABadVCenter(t *testing.T) {
	s, right := stand(t, readLab(t))
	for name, c := range map[string]struct {
		want  string
		serve func(http.ResponseWriter, string) bool
	}{
		"away in the middle": {"EOF", func(_ http.ResponseWriter, q string) bool {
			if strings.Contains(q, "HostSystem") {
				panic(http.ErrAbortHandler)
			}
			return false
		}},
		"an answer without end": {"an answer is larger than 1 MiB", func(w http.ResponseWriter, q string) bool {
			if !strings.Contains(q, "RetrievePropertiesEx") {
				return false
			}
			_, err := io.WriteString(w, envelope)
			for junk := bytes.Repeat([]byte("<!-- -->"), 1<<16); err == nil; {
				_, err = w.Write(junk)
			}
			return true
		}},
		"pages without end": {"and no end", func(w http.ResponseWriter, q string) bool {
			if !strings.Contains(q, "RetrievePropertiesEx") {
				return false
			}
			io.WriteString(w, envelope+`<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><token>1</token>`+
				`</returnval></RetrievePropertiesExResponse></soapenv:Body></soapenv:Envelope>`)
			return true
		}},
		"elsewhere": {"another address", func(w http.ResponseWriter, _ string) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusFound)
			return true
		}},
	} {
		o := right
		o.answer = 1 << 20
		front(t, &o, s, c.serve)
		if err := Dump(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whoever does not answer is waited for no longer than the timeout, or until the user ends it.
func TestDump_WaitsForNobodyForever(t *testing.T) {
	s, right := stand(t, readLab(t))
	free := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	asked := func(_ http.ResponseWriter, q string) bool {
		if strings.Contains(q, "RetrievePropertiesEx") {
			cancel()
			<-free
		}
		return false
	}
	front(t, &right, s, asked)
	t.Cleanup(func() { close(free) }) // before the server of front waits for its calls
	if err := Dump(ctx, right, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("ended by the user: %v", err)
	}
	o := right
	o.Timeout = time.Second
	if err := Dump(t.Context(), o, io.Discard); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("no answer: %v", err)
	}
}

// Names with marks of XML, JSON and terminals arrive as they are, and many pages are all read.
func TestDump_TakesHostileNamesAndManyPages(t *testing.T) {
	l := readLab(t)
	const many = 230 // more than two pages
	for i := range many {
		g := &mo.DistributedVirtualPortgroup{}
		g.Self = types.ManagedObjectReference{Type: "DistributedVirtualPortgroup", Value: fmt.Sprintf("many-%d", i)}
		g.Name = fmt.Sprintf("]]></val><x>&amp;\"' \u202e${x} %d", i)
		g.Config = types.DVPortgroupConfigInfo{Key: g.Self.Value, Name: g.Name, Type: "ephemeral",
			DistributedVirtualSwitch: &l.sw.Self, DefaultPortConfig: &types.VMwareDVSPortSetting{}}
		l.groups = append(l.groups, g)
	}
	_, o := stand(t, l)
	most := map[string]int{}
	o.Progress = func(kind string, n int) { most[kind] = n }
	var dump bytes.Buffer
	if err := Dump(t.Context(), o, &dump); err != nil {
		t.Fatal(err)
	}
	if most["port group"] != len(l.groups) || most["switch"] != 1 || most["host"] != 2 {
		t.Errorf("it was told of %v", most)
	}
	var inv vsphere.Inventory
	if err := inv.Read("live", &dump); err != nil {
		t.Fatal(err)
	}
	r, err := inv.Translate(vsphere.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.PortGroups != many+3 {
		t.Errorf("it has %d port groups", r.PortGroups)
	}
	renamed := false
	for _, n := range r.Notes {
		renamed = renamed || n.Outcome == vsphere.Renamed && strings.HasPrefix(n.Value, `]]></val><x>&amp;"' `) &&
			strings.HasSuffix(n.Value, fmt.Sprintf("${x} %d", many-1))
	}
	if !renamed {
		t.Error("the last hostile name is not among those that were renamed")
	}
}
