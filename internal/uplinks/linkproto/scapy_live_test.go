package linkproto_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/uplinks/lacp"
)

// scapyPeer plays the physical switch on w0. Commands are JSON, one a line; each is answered by one line: the LACPDU
// that was received last.
//
//	until: receive LACPDUs until one has the state under the mask, and knows the peer (knows); send the own
//	  state again after each other one
//	say:   send a LACPDU with that state, whose partner is the sender of the last received one
//	raw:   send these bytes after the EtherType
//	mark:  send a marker and receive LACPDUs until its response comes
//	lldp:  send an LLDPDU of that system name and TTL
const scapyPeer = `
import json, sys, time
from scapy.all import Ether, Raw, conf
from scapy.contrib.lacp import SlowProtocol, LACP, MarkerProtocol
from scapy.contrib.lldp import *
me = "02:00:00:00:0a:0a"
sock = conf.L2socket(iface="w0")
last, own = None, None
FIELDS = ["_system_priority", "_system", "_key", "_port_priority", "_port_number", "_state"]
def hear():
    global last
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if not sock.select([sock], 1):
            continue
        p = sock.recv()
        if p is None or Ether not in p or p[Ether].type != 0x8809 or p[Ether].src == me:
            continue
        p = Ether(bytes(p))
        if LACP in p:
            last = p
        return p
    sys.exit("nothing was heard for 30 s")
def send(payload):
    sock.send(Ether(src=me, dst="01:80:c2:00:00:02", type=0x8809) / payload)
def say(state):
    global own
    own = state
    f = dict(actor_system_priority=100, actor_system=me, actor_key=9, actor_port_priority=5, actor_port_number=17, actor_state=state)
    if last is not None:
        f.update({"partner" + n: getattr(last[LACP], "actor" + n) for n in FIELDS})
    send(SlowProtocol() / LACP(**f))
for line in sys.stdin:
    c = json.loads(line)
    if "until" in c:
        while True:
            p = hear()
            if LACP not in p:
                continue
            if p[LACP].actor_state & c["mask"] == c["until"] and (not c["knows"] or p[LACP].partner_system == me):
                break
            if own is not None:
                say(own)
    elif "say" in c:
        say(c["say"])
    elif "raw" in c:
        send(Raw(bytes.fromhex(c["raw"])))
    elif "mark" in c:
        send(SlowProtocol(subtype=2) / MarkerProtocol(requester_port=17, requester_system=me, requester_transaction_id=c["mark"]))
        while True:
            p = hear()
            if MarkerProtocol in p and p[MarkerProtocol].marker_type == 2 and p[MarkerProtocol].requester_transaction_id == c["mark"]:
                break
    elif "lldp" in c:
        sock.send(Ether(src=me, dst="01:80:c2:00:00:0e", type=0x88cc) / LLDPDUChassisID(subtype=4, id=me) / LLDPDUPortID(subtype=5, id="Ethernet1/17")
            / LLDPDUTimeToLive(ttl=c["ttl"]) / LLDPDUSystemName(system_name=c["lldp"]) / LLDPDUGenericOrganisationSpecific(org_code=0x0080c2, subtype=1, data=bytes([0, 42]))
            / LLDPDUEndOfLLDPDU())
    out = {} if last is None else {side + n: getattr(last[LACP], side + n) for side in ("actor", "partner") for n in FIELDS}
    print(json.dumps(out), flush=True)
`

// heardPDU is the PDU that the peer received last, as scapy decodes it.
type heardPDU struct {
	ActorSystem  string     `json:"actor_system"`
	ActorPort    uint16     `json:"actor_port_number"`
	ActorState   lacp.State `json:"actor_state"`
	PartnerState lacp.State `json:"partner_state"`
	Partner      string     `json:"partner_system"`
	PartnerKey   uint16     `json:"partner_key"`
	PartnerPort  uint16     `json:"partner_port_number"`
}

type peer struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func newPeer(t *testing.T, ns *netns.NS) *peer {
	t.Helper()
	testkit.Scapy(t)
	c := testkit.ScapyCommand(t.Context(), scapyPeer)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	c.Stderr = &errs
	if err := ns.Start(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait() // the test's end may have killed it
		if t.Failed() {
			t.Logf("scapy: %s", errs.String())
		}
	})
	return &peer{t, in, bufio.NewScanner(out)}
}

func (p *peer) do(command map[string]any) (heard heardPDU) {
	p.t.Helper()
	b, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(b, '\n')); err != nil {
		p.t.Fatal(err)
	}
	if !p.out.Scan() {
		p.t.Fatalf("scapy ended at %s", b)
	}
	if err := json.Unmarshal(p.out.Bytes(), &heard); err != nil {
		p.t.Fatal(err)
	}
	return heard
}

func (p *peer) say(s lacp.State) { p.t.Helper(); p.do(map[string]any{"say": s}) }

// until waits for a LACPDU with exactly these flags, from an agent that knows the peer.
func (p *peer) until(s lacp.State) heardPDU {
	p.t.Helper()
	return p.do(map[string]any{"until": s, "mask": 0xff, "knows": true})
}

const (
	joined    = lacp.Activity | lacp.ShortTimeout | lacp.Aggregation
	inSync    = joined | lacp.Synchronization
	collects  = inSync | lacp.Collecting
	everybody = collects | lacp.Distributing
)

// A peer made of scapy takes the agent through the protocol, frame by frame.
func TestLACP_AgainstScapyFrameByFrame(t *testing.T) {
	t.Parallel()
	h := newHost(t, "scapya")
	other := testkit.NS(t, "scapyb")
	wires(t, h.ns, other, 2)
	p := newPeer(t, other)
	p.do(map[string]any{"raw": "0a"}) // scapy has loaded; OAM is ignored
	h.start(config("192.0.2.1", "timeout: fast, fallback: none", "none"))

	first := p.do(map[string]any{"until": joined, "mask": joined, "knows": false})
	if first.ActorState&lacp.Defaulted == 0 || first.Partner != "00:00:00:00:00:00" ||
		first.ActorSystem != h.uplink("up0").MAC || first.ActorPort != 1 {
		t.Errorf("the first word: %+v", first)
	}
	p.say(joined)
	if got := p.until(joined); got.PartnerKey != 9 || got.PartnerPort != 17 ||
		got.PartnerState&^lacp.Synchronization != joined {
		t.Errorf("it has heard the peer: %+v", got)
	}
	p.until(inSync)
	h.await("attached, and why that is not enough", func() bool {
		u := h.uplink("up0")
		return u.State == api.Out && u.Reason == "lacp: partner not in sync"
	})
	p.say(inSync)
	p.until(collects)
	p.say(collects)
	p.until(everybody)
	h.used("up0")
	p.do(map[string]any{"mark": 77})
	p.do(map[string]any{"raw": "0101ffff"})
	h.await("the bad frame is counted", func() bool { l := h.uplink("up0").LAG; return l.Bad == 1 && l.Markers == 1 })
	p.say(joined)
	p.until(inSync)
	h.used()
	p.say(everybody)
	p.until(everybody)
	h.used("up0")
	if u := h.uplink("up1"); u.LAG.Reason != "lacp: no partner" || u.LAG.Partner != nil {
		t.Errorf("the member nobody speaks on: %+v", u.LAG)
	}
}

// A passive LAG with slow timeouts sends nothing until the peer does, and then goes through the protocol with it, frame
// by frame.
func TestS53_PassiveAndSlowAgainstScapyFrameByFrame(t *testing.T) {
	testkit.Long(t, "waits for the slow timers of LACP; TestLACP_AgainstScapyFrameByFrame has the fast ones")
	h := newHost(t, "scapyp")
	other := testkit.NS(t, "scapyq")
	wires(t, h.ns, other, 2)
	p := newPeer(t, other)
	p.do(map[string]any{"raw": "0a"}) // scapy has loaded
	h.start(config("192.0.2.1", "mode: passive, timeout: slow, fallback: none", "none"))
	h.await("up0 has given up waiting", func() bool { return h.uplink("up0").LAG.Receive == "defaulted" })
	if out := h.uplink("up0").LAG.Out; out != 0 {
		t.Errorf("%d LACPDUs were sent to a silent peer", out)
	}
	const (
		own     = lacp.Aggregation // neither active nor fast
		ownSync = own | lacp.Synchronization
		peer    = lacp.Activity | lacp.Aggregation
		sync    = peer | lacp.Synchronization
		takes   = sync | lacp.Collecting
		both    = takes | lacp.Distributing
	)
	p.say(peer)
	if got := p.until(own); got.PartnerKey != 9 || got.PartnerPort != 17 ||
		got.PartnerState&^lacp.Synchronization != peer {
		t.Errorf("it has heard the peer: %+v", got)
	}
	p.until(ownSync)
	p.say(sync)
	p.until(ownSync | lacp.Collecting)
	p.say(takes)
	p.until(ownSync | lacp.Collecting | lacp.Distributing)
	h.used("up0")
	p.say(both)
	if u := h.uplink("up0"); u.LAG.Partner == nil || u.State != api.Up {
		t.Errorf("in use: %s, %+v", u.State, u.LAG)
	}
	p.say(peer)
	p.until(ownSync)
	h.used()
}

// A passive LAG towards a silent peer: no LACPDU is sent, and without fallback no member is used.
func TestS53_PassiveTowardsASilentPeer(t *testing.T) {
	t.Parallel()
	h := newHost(t, "passa")
	other := testkit.NS(t, "passb")
	wires(t, h.ns, other, 2)
	h.start(config("192.0.2.1", "mode: passive, timeout: fast, fallback: none", "none"))
	for _, name := range []string{"up0", "up1"} {
		h.await(name+" has given up waiting", func() bool { return h.uplink(name).LAG.Receive == "defaulted" })
		if u := h.uplink(name); u.State != api.Out || u.LAG.Used || u.LAG.Out != 0 || u.Reason != "lacp: no partner" {
			t.Errorf("%s is %s: %s, %+v", name, u.State, u.Reason, u.LAG)
		}
	}
	apply(t, h, config("192.0.2.1", "mode: passive, timeout: fast, fallback: single", "none"))
	h.used("up0")
	if u := h.uplink("up0"); !u.LAG.Single || u.LAG.Out != 0 {
		t.Errorf("fallback: %+v", u.LAG)
	}
	run(t, other, "ip link set w0 down")
	h.used("up1")
}

// heddle uplink show names the physical switch and port.
func TestLLDP_AgainstScapy(t *testing.T) {
	t.Parallel()
	h := newHost(t, "lldpa")
	other := testkit.NS(t, "lldpb")
	wires(t, h.ns, other, 2)
	p := newPeer(t, other)
	h.start(config("192.0.2.1", "fallback: none", "listen"))
	h.await("LLDP listens", func() bool { return h.uplink("up0").LLDP != nil })
	p.do(map[string]any{"lldp": "leaf-1", "ttl": 120})
	h.await("the neighbour is known", func() bool { return len(h.uplink("up0").LLDP.Neighbours) == 1 })
	text := h.heddle("uplink", "show", "up0")
	for _, want := range []string{"leaf-1 port Ethernet1/17", "02:00:00:00:0a:0a", "untagged VLAN 42"} {
		if !strings.Contains(text, want) {
			t.Errorf("uplink show lacks %q:\n%s", want, text)
		}
	}
	var u api.Uplink
	if err := json.Unmarshal([]byte(h.heddle("uplink", "show", "up0", "-o", "json")), &u); err != nil ||
		u.LLDP.Neighbours[0].PVID != 42 || u.LLDP.Out != 0 {
		t.Errorf("as JSON: %v, %+v", err, u.LLDP)
	}
	p.do(map[string]any{"lldp": "leaf-1", "ttl": 0})
	h.await("the neighbour has said goodbye", func() bool { return len(h.uplink("up0").LLDP.Neighbours) == 0 })
	p.do(map[string]any{"lldp": "leaf-1", "ttl": 1})
	h.await("the neighbour came back", func() bool { return len(h.uplink("up0").LLDP.Neighbours) == 1 })
	h.await("its time is over", func() bool { return len(h.uplink("up0").LLDP.Neighbours) == 0 })
}
