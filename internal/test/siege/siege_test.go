package siege

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/identity"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// Addresses of the loopback: everybody on it is somebody else.
const (
	attackersAddress = "127.0.0.2"
	adminsAddress    = "127.0.0.1"
)

// mostMemory is how much the controller may have resident, in KiB. On a busy machine, which has no time to collect what
// is not used any more, it may have mostMemoryBusy.
const (
	mostMemory     = 300 << 10
	mostMemoryBusy = 600 << 10
)

// castle is a controller with an admin, and what attackers have.
type castle struct {
	*testing.T
	*realhost.Controller
	api    string // HOST:PORT for people
	admin  *api.Fleet
	tokens map[string]string // by name
	trust  identity.Fingerprint
	join   string // a token for a host
}

const definition = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: db, vlan: {access: 20}}
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
`

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", adminsAddress+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func newCastle(t *testing.T) *castle {
	t.Helper()
	c := &castle{T: t, Controller: realhost.NewController(t, nil, free(t)), api: free(t),
		tokens: map[string]string{}}
	c.Args = []string{"--api-listen", c.api, "--listen-peers", "none"}
	c.Start()
	c.Define(definition)
	scope := []api.AccessScope{{Switch: "dvs", PortGroup: "web"}}
	for name, terms := range map[string]api.TokenTerms{"admin": {Role: "admin"},
		"viewer":  {Role: "viewer", Scopes: scope},
		"network": {Role: "network-admin", Scopes: scope}, "shaper": {Role: "network-admin"}} {
		terms.Name, terms.Lasts = name, 24*time.Hour
		token, err := c.CreateToken(t.Context(), terms)
		if err != nil {
			t.Fatal(err)
		}
		c.tokens[name] = token.Token
		if err := c.trust.UnmarshalText([]byte(token.Trust.Fingerprint)); err != nil {
			t.Fatal(err)
		}
	}
	token, err := c.JoinToken(t.Context(), api.JoinTerms{Labels: map[string]string{"rack": "a"}, Lasts: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c.join = token.Token
	c.admin = api.NewRemoteFleet(api.Remote{URL: "https://" + c.api, TLS: c.tls(), Token: c.tokens["admin"]})
	return c
}

func (c *castle) tls() *tls.Config { return identity.PinnedTLS(c.trust, identity.NewClock(time.Now)) }

// resident is how much memory the controller has, in KiB, and has had at most.
func (c *castle) resident() (now, most int) {
	c.T.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID()) + "/status")
	if err != nil {
		c.T.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if into := map[string]*int{"VmRSS:": &now, "VmHWM:": &most}[f[0]]; into != nil {
			if *into, err = strconv.Atoi(f[1]); err != nil {
				c.T.Fatal(err)
			}
		}
	}
	return now, most
}

// works has the admin call, and a host connect, until ctx ends, and returns how long each took.
func (c *castle) works(ctx context.Context) (calls, hosts []time.Duration) {
	conf := c.tls()
	conf.NextProtos = []string{"h2"}
	for n := 0; ctx.Err() == nil; n++ {
		admin := c.admin
		if n%4 == 0 { // by a new connection
			admin = api.NewRemoteFleet(api.Remote{URL: "https://" + c.api, TLS: c.tls(), Token: c.tokens["admin"]})
		}
		begun := time.Now()
		if _, err := admin.Hosts(c.Context()); err != nil {
			c.Errorf("the admin is not answered: %v", err)
		}
		calls = append(calls, time.Since(begun))
		if n%16 == 0 {
			begun = time.Now()
			conn, err := (&tls.Dialer{Config: conf}).DialContext(c.Context(), "tcp", c.Address)
			if err != nil {
				c.Errorf("a host can't connect: %v", err)
				continue
			}
			hosts = append(hosts, time.Since(begun))
			_ = conn.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // as often as a busy admin's tools ask
		}
	}
	return calls, hosts
}

// quantile is what so many of a thousand are below.
func quantile(of []time.Duration, perMille int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[(len(of)-1)*perMille/1000]
}

// A controller that is attacked in all these ways at once stays small, answers who manages the cluster, and forgets
// nothing of what they did. With HEDDLE_SOAK, how long the attack is, it answers in time as well.
func TestS135_S136_S137_AnAttackedControllerAnswersItsAdmin(t *testing.T) {
	testkit.Root(t)
	testkit.Long(t, "an attack of 10 s")
	testkit.Weigh(t, 3)
	lasts, soak := 10*time.Second, os.Getenv("HEDDLE_SOAK")
	if soak != "" {
		var err error
		if lasts, err = time.ParseDuration(soak); err != nil {
			t.Fatalf("HEDDLE_SOAK: %v", err)
		}
	}
	c := newCastle(t)
	before, err := c.Audit(t.Context(), api.AuditQuery{Most: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	ended := (&attacker{Hosts: c.Address, People: c.api, Trust: c.trust, Viewer: c.tokens["viewer"],
		Network: c.tokens["network"], Shaper: c.tokens["shaper"], Join: c.join}).attack(ctx, t)
	calls, hosts := c.works(ctx)
	ended()
	now, most := c.resident()
	t.Logf("%d calls of the admin: half within %s, 99 %% within %s, at most %s; %d hosts connect within %s; the "+
		"controller has %d MiB, and had %d at most", len(calls), quantile(calls, 500), quantile(calls, 990),
		quantile(calls, 1000), len(hosts), quantile(hosts, 1000), now>>10, most>>10)
	bound := mostMemoryBusy
	if soak != "" {
		bound = mostMemory
	}
	if most > bound {
		t.Errorf("the controller had %d MiB", most>>10)
	}
	if soak != "" && (quantile(calls, 990) > time.Second || quantile(hosts, 1000) > 3*time.Second) {
		t.Error("that is too slow")
	}
	after, err := c.Audit(t.Context(), api.AuditQuery{Most: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[int64]bool{}
	for _, e := range after.Entries {
		kept[e.Number] = true
	}
	for _, e := range before.Entries {
		if !kept[e.Number] {
			t.Errorf("the audit log has %s of %s no more", e.Call, e.Who)
		}
	}
}
