package smoke

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// flowConfig meters what a sends, where it enters and where it leaves.
const flowConfig = `
switches:
  - name: lab
    ipfix:
      collectors: [{address: 127.0.0.1, port: %d}]
      observationDomainId: 7
      idleFlowTimeout: 10s
      maxFlows: %d
    portGroups:
      - {name: web, vlan: {access: 10}, monitoring: {ipfix: %v}}
ports:
  - {name: a, switch: lab, portGroup: web, device: port-a, mac: "02:00:00:00:00:01"}
  - {name: b, switch: lab, portGroup: web, device: port-b, mac: "02:00:00:00:00:02"}
`

// maxFlows is more than the quiet part of the test has, and less than its flood.
const maxFlows = 2000

// flowRig is a host whose port a sends to port b, and a collector.
type flowRig struct {
	*host
	a, b      *cable.End
	collector *collector
	sent      account // by a, and handed to b
	next      uint64
}

func newFlowRig(t *testing.T) *flowRig {
	h := newHost(t, testkit.NS(t, "host"))
	return &flowRig{host: h, a: h.quietly("port-a", cable.MAC(1)), b: h.quietly("port-b", cable.MAC(2)),
		collector: h.collect(0)}
}

// begin starts the agent.
func (r *flowRig) begin(config string) {
	r.T.Helper()
	r.Start(config)
	r.Up("a", "b")
}

// quietly is plug with an owner whose stack sends nothing of its own.
func (h *host) quietly(device string, mac [6]byte) *cable.End {
	h.T.Helper()
	return h.QuietlyIn(device, device, mac)
}

// send has a send n numbered packets to b, over so many flows; sizes differ.
func (r *flowRig) send(n, flows int) {
	for range n {
		r.next++
		packet := udp(uint16(10000+int(r.next)%flows), int(r.next%1400))
		binary.BigEndian.PutUint16(packet[4:], uint16(r.next)) // the packet's number, as its identification
		r.a.Send(frameOf(2, 1, packet))
		r.sent.add(1, uint64(len(packet)))
	}
}

// frameOf is a frame with a packet, whose header gets its checksum.
func frameOf(to, from byte, packet []byte) []byte {
	checksum(packet)
	return append(append(append(mac(to), mac(from)...), 8, 0), packet...)
}

// sendOverDrains sends until what was counted has been taken out of the kernel at least three times meanwhile.
func (r *flowRig) sendOverDrains(flows int) {
	r.T.Helper()
	drains, last := 0, r.status().Counted.Packets
	r.Await("three drains under load", func() bool {
		r.send(500, flows)
		if n := r.status().Counted.Packets; n != last {
			drains, last = drains+1, n
		}
		return drains >= 3
	})
}

func mac(n byte) []byte { m := cable.MAC(n); return m[:] }

// udp is an IPv4 packet from 192.0.2.1 to 198.51.100.2; its header has no checksum yet.
func udp(from uint16, payload int) []byte {
	p := make([]byte, 28+payload)
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	copy(p[12:], []byte{192, 0, 2, 1, 198, 51, 100, 2})
	binary.BigEndian.PutUint16(p[20:], from)
	binary.BigEndian.PutUint16(p[22:], 9)
	binary.BigEndian.PutUint16(p[24:], uint16(8+payload))
	return p
}

func checksum(p []byte) {
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum>>16+sum))
}

// status is how metering of the switch does.
func (r *flowRig) status() api.FlowSwitch {
	r.T.Helper()
	s, err := r.FlowStatus(context.Background())
	if err != nil {
		r.T.Fatal(err)
	}
	if len(s.Switches) == 0 {
		return api.FlowSwitch{}
	}
	return s.Switches[0]
}

// lost is what the kernel could not record, by direction: what a sent in, what b was handed out.
func (r *flowRig) lost() (by [2]account) {
	for _, l := range r.status().Losses {
		by[map[string]int{"a": 0, "b": 1}[l.Port]].add(l.Packets, l.Bytes)
	}
	return by
}

// awaitAll waits until the records, and what is counted as lost, make up what was sent, to the packet and byte, both
// where it entered and where it left.
func (r *flowRig) awaitAll(what string) {
	r.T.Helper()
	var got [2]account
	var say string
	r.awaitOr(what, func() bool {
		var repeats int
		got, repeats = r.collector.sums()
		lost, undelivered := r.lost(), r.undelivered()
		for d := range got {
			got[d].add(lost[d].packets, lost[d].bytes)
		}
		say = fmt.Sprintf("sent %v; in records or lost %v in, %v out; lost by the kernel %v, on the way %v; %d repeats",
			r.sent, got[0], got[1], lost, undelivered, repeats)
		return got[0].packets+got[1].packets+undelivered.packets == 2*r.sent.packets && got[0].bytes+got[1].bytes+
			undelivered.bytes == 2*r.sent.bytes
	}, func() string { return say })
	r.T.Log(what + ": " + say)
	if r.undelivered().packets == 0 && (got[0] != r.sent || got[1] != r.sent) {
		r.T.Errorf("%s: %s", what, say)
	}
}

// undelivered counts the content of records that the collector did not receive.
func (r *flowRig) undelivered() (a account) {
	for _, c := range r.status().Collectors {
		a.add(c.LostPackets, c.LostBytes)
	}
	return a
}

// awaitOr waits, and says why in vain.
func (r *flowRig) awaitOr(what string, holds func() bool, say func() string) {
	r.T.Helper()
	defer func() {
		if r.T.Failed() {
			r.T.Logf("%s: %s", what, say())
		}
	}()
	r.Await(what, holds)
}

// meter switches metering on or off, which ends all flows.
func (r *flowRig) meter(on bool) {
	r.Configure(fmt.Sprintf(flowConfig, r.collector.port, maxFlows, on))
}

// TestS64_S65_EveryPacketIsInARecordOrCounted: numbered packets of known sizes pass, under drains; records end by
// idleness; the agent is killed and another goes on; the collector is away for a while; more flows come than there is
// room for; with HEDDLE_SOAK flows last longer than their active timeout. To the packet and byte, what the records tell
// and what is counted as lost is what was sent, once where it entered and once where it left.
func TestS64_S65_EveryPacketIsInARecordOrCounted(t *testing.T) {
	testkit.Long(t, "sends, kills and drains for long; TestS63_D6_WhatIsMeteredIsChosenByPortAndDirection has "+
		"records")
	r := newFlowRig(t)
	r.begin(fmt.Sprintf(flowConfig, r.collector.port, maxFlows, true))
	r.sendOverDrains(100)
	r.awaitAll("idle flows are told of")
	if by := r.collector.reasons(); by[1] < 200 || len(by) != 1 {
		t.Errorf("records by reason: %v, want 100 in and 100 out for idleness", by)
	}
	r.send(3000, 50)
	r.Await("the first of them are drained", func() bool { return r.status().Flows > 0 })
	r.send(2000, 50)
	r.End(syscall.SIGKILL)
	r.send(2000, 50) // with no agent
	r.Start("")
	r.send(1000, 50)
	r.meter(false)
	r.awaitAll("over the death of the agent")
	r.outage()
	if os.Getenv("HEDDLE_SOAK") != "" {
		r.lasting()
	}
	r.flood()
	r.collector.sound()
}

// lasting has flows last longer than their active timeout, which is a minute at least.
func (r *flowRig) lasting() {
	r.meter(true)
	begun := time.Now()
	for time.Since(begun) < 130*time.Second {
		r.send(50, 20)
		time.Sleep(10 * time.Millisecond)
	}
	if by := r.collector.reasons(); by[2] < 2*2*20 {
		r.T.Errorf("records by reason: %v, want two in and two out of each of 20 flows for the active timeout", by)
	}
	r.meter(false)
	r.awaitAll("flows that last")
}

// outage ends flows while nobody listens: they are counted as lost, and the next ones arrive.
func (r *flowRig) outage() {
	r.meter(true)
	r.collector.close()
	r.send(1000, 40)
	r.meter(false)
	r.awaitAll("while the collector is away")
	if a := r.undelivered(); a.packets == 0 {
		r.T.Error("nothing was lost: the outage was none")
	}
	r.collector.open(r.host)
	r.meter(true)
	r.send(1000, 40)
	r.meter(false)
	r.awaitAll("when the collector is back")
}

// flood makes more flows come between two drains than the tables can hold.
func (r *flowRig) flood() {
	r.meter(true)
	r.send(10000, 10000)
	r.meter(false)
	r.awaitAll("with more flows than fit")
	if lost := r.lost(); lost[0].packets == 0 || lost[1].packets == 0 {
		r.T.Errorf("nothing was lost: %v", lost)
	}
}
