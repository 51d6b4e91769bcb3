package export

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// The template message of the vds shape, byte by byte: field order, lengths and enterprise numbers of
// docs/reference/ipfix.md.
func TestS69_VDSTemplatesAreThoseOfVSphere(t *testing.T) {
	const (
		counts  = "00010008 00020008 00980008 00990008 "
		ports   = "00070002 000b0002 "
		points  = "000a0004 000e0004 "
		segment = "015f0008 "
		middle  = "00040001 00880001 "
		behind  = "00050001 00350001 003d0001 "
		vmware  = "837a0002 00001adc 83780002 00001adc 83790001 00001adc "
	)
	with := func(id, addresses string) string {
		return id + "0015 " + addresses + counts + ports + points + segment + middle + "00060001 " + behind + vmware +
			"00d20001 "
	}
	without := func(id, addresses string) string {
		return id + "0012 " + addresses + counts + points + middle + behind + segment + vmware + "00d20002 "
	}
	const four, six = "00080004 000c0004 ", "001b0010 001c0010 "
	// Of packets in tunnels: addresses and ports are the outer ones, and the tenant's are the inner ones.
	const (
		outer       = four + counts + ports + points + "00040001 "
		tenantFour  = "83710004 00001adc 83720004 00001adc "
		tenantSix   = "83730010 00001adc 83740010 00001adc "
		tenantPorts = "83760002 00001adc 83770002 00001adc "
		tenant      = "83700001 00001adc "
	)
	tunnels := "0104 0019 " + outer + "00880001 00060001 " + behind + segment + tenantFour + tenantPorts + tenant +
		vmware + "0105 0017 " + outer + "00880001 " + behind + segment + tenantFour + tenant + vmware + "00d20001 " +
		"0106 0019 " + outer + "00880001 00060001 " + behind + segment + tenantSix + tenantPorts + tenant + vmware +
		"0107 0017 " + outer + behind + "00880001 " + segment + tenantSix + tenant + vmware + "00d20001 "
	want := with("0100", four) + without("0101", four) + with("0102", six) + without("0103", six) + tunnels +
		with("0108", four) +
		with("0109", six) +
		with("010a", four) + with("010b", six) + without("010c", four)
	want = strings.ReplaceAll(want, " ", "")
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, VDS))
	r.pass(0)
	c.awaitMessages(1)
	if len(c.messages) != 1 {
		t.Fatalf("%d messages instead of one", len(c.messages))
	}
	if got := hex.EncodeToString(c.messages[0].bytes[20:]); got != want {
		t.Errorf("templates\n got %s\nwant %s", got, want)
	}
	if n := len(c.messages[0].bytes); n > 1500-28 {
		t.Errorf("the message has %d bytes", n)
	}
}

func TestS69_VDSRecordsHaveTheirLengthsAndValues(t *testing.T) {
	v, err := newVDS()
	if err != nil {
		t.Fatal(err)
	}
	lengths := map[uint16]int{256: 72, 257: 68, 258: 96, 259: 92, 260: 84, 261: 80, 262: 108, 263: 104,
		264: 72, 265: 96, 266: 72, 267: 96, 268: 68}
	for _, tpl := range v.templates() {
		if tpl.RecordLength() != lengths[tpl.ID()] {
			t.Errorf("template %d: records of %d bytes, want %d", tpl.ID(), tpl.RecordLength(), lengths[tpl.ID()])
		}
	}
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, VDS))
	rec := record(0)
	rec.Delta.In, rec.Total.In, rec.Delta.TCPFlags = 3, 3, 0x112
	r.send(rec)
	flows := c.await(1)
	if len(flows) != 1 {
		t.Fatalf("%d records", len(flows))
	}
	for element, want := range map[string]uint64{"octetDeltaCount": 100, "packetDeltaCount": 1,
		"sourceTransportPort": 1024, "destinationTransportPort": 80,
		"ingressInterface": 2, "egressInterface": 11, "layer2SegmentId": 0, "protocolIdentifier": 6, "flowEndReason": 2,
		"tcpControlBits":   0x12,
		"ipClassOfService": 0xb8, "maximumTTL": 64, "flowDirection": 1, "ingressInterfaceAttr": 1,
		"egressInterfaceAttr": 2, "vxlanExportRole": 0,
		"paddingOctets": 0, "flowStartMilliseconds": uint64(rec.Delta.First),
		"flowEndMilliseconds": uint64(rec.Delta.Last), "template": 264} {
		t.Run(element, func(t *testing.T) {
			if got := number(t, flows[0], element); got != want {
				t.Errorf("%s = %d, want %d", element, got, want)
			}
		})
	}
	if text(flows[0], "sourceIPv4Address") != "10.1.0.0" || text(flows[0], "destinationIPv4Address") != "10.2.0.1" {
		t.Errorf("addresses of %v", flows[0])
	}
}

func TestS63_VDSRecordsAreOfWhatLeavesByThePort(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, VDS))
	in, out, both := record(1), record(2), record(3)
	in.Key.Direction, both.Key.Direction = flow.Ingress, flow.Ingress
	both.Reverse = &flow.Reverse{Start: both.Start, Delta: flow.Counts{Packets: 77}, Total: flow.Counts{Packets: 77}}
	r.send(in, out, both)
	flows := c.await(2)
	if len(flows) != 2 || number(t, flows[1], "packetDeltaCount") != 77 ||
		text(flows[1], "sourceIPv4Address") != "10.2.0.1" {
		t.Errorf("records %v", flows)
	}
	for _, f := range flows {
		if number(t, f, "flowDirection") != 1 {
			t.Errorf("a record is not egress: %v", f)
		}
	}
	if n := r.x.Status()[0].Unshaped; n != 1 {
		t.Errorf("%d records have no form, want 1", n)
	}
}

func TestStandardRecordsSayEverything(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	rec := record(0)
	all := rec
	all.Delta.TCPFlags = 0x112
	r.send(rec, all)
	flows := c.await(2)
	if len(flows) != 2 {
		t.Fatalf("%d records", len(flows))
	}
	for element, want := range map[string]uint64{"octetDeltaCount": 100, "packetDeltaCount": 1,
		"layer2OctetDeltaCount": 114, "octetTotalCount": 1100,
		"packetTotalCount": 11, "layer2OctetTotalCount": 1254, "sourceTransportPort": 1024,
		"destinationTransportPort": 80, "ingressInterface": 10,
		"egressInterface": 11, "protocolIdentifier": 6, "flowEndReason": 2, "tcpControlBits": 0x12,
		"ipClassOfService": 0xb8, "minimumTTL": 62,
		"maximumTTL": 64, "flowDirection": 1, "vlanId": 100, "postVlanId": 100, "dot1qVlanId": 100,
		"ethernetType":          0x800,
		"flowStartMilliseconds": uint64(rec.Delta.First), "flowEndMilliseconds": uint64(rec.Delta.Last),
		"template": 311} {
		t.Run(element, func(t *testing.T) {
			if got := number(t, flows[0], element); got != want {
				t.Errorf("%s = %d, want %d", element, got, want)
			}
		})
	}
	if text(flows[0], "sourceMacAddress") != "02:00:00:00:01:01" ||
		text(flows[0], "destinationMacAddress") != "02:00:00:00:01:02" {
		t.Errorf("MACs of %v", flows[0])
	}
	for i, want := range []int{1, 2} {
		if v := flows[i]["tcpControlBits"]; len(v.Bytes) != want || number(t, flows[i], "template") != uint64(311+2*i) {
			t.Errorf("record %d: tcpControlBits has %d bytes in template %v", i, len(v.Bytes), flows[i]["template"])
		}
	}
	if n := number(t, flows[1], "tcpControlBits"); n != 0x112 {
		t.Errorf("tcpControlBits = %#x with all flags", n)
	}
	id := number(t, flows[0], "flowId")
	if id>>flowIDBits != uint64(rec.Start) || number(t, flows[1], "flowId") != id {
		t.Errorf("flowId %d of a flow that began at %d", id, rec.Start)
	}
}

// A flow's id depends on everything that identifies the flow, and on nothing else: all records of a flow have the same
// id, also from another agent.
func TestFlowsHaveIDsOfTheirOwn(t *testing.T) {
	seen := map[uint64]bool{}
	id := func(change func(*flow.Record)) uint64 {
		r := record(7)
		change(&r)
		return flowID(&r.Key, uint32(r.Key.Point), r.Start)
	}
	same := id(func(*flow.Record) {})
	if id(func(r *flow.Record) {
		r.Delta, r.Total, r.Reason = flow.Counts{}, flow.Counts{}, flow.IdleTimeout
	}) != same {
		t.Error("what was counted changes the id")
	}
	changes := []func(*flow.Record){func(*flow.Record) {}, func(r *flow.Record) { r.Start++ }, func(r *flow.Record) {
		r.Key.Point++
	},
		func(r *flow.Record) { r.Key.Direction = flow.Ingress }, func(r *flow.Record) { r.Key.VLAN++ },
		func(r *flow.Record) { r.Key.VLAN |= flow.AD },
		func(r *flow.Record) { r.Key.EtherType++ }, func(r *flow.Record) { r.Key.Protocol++ }, func(r *flow.Record) {
			r.Key.SrcPort++
		},
		func(r *flow.Record) { r.Key.DstPort++ }, func(r *flow.Record) {
			r.Key.SrcPort, r.Key.DstPort = r.Key.DstPort, r.Key.SrcPort
		},
		func(r *flow.Record) { r.Key.Src, r.Key.Dst = r.Key.Dst, r.Key.Src }}
	for i := range 16 {
		changes = append(changes, func(r *flow.Record) { r.Key.Src[i]++ }, func(r *flow.Record) { r.Key.Dst[i]++ })
	}
	for i := range 6 {
		changes = append(changes, func(r *flow.Record) { r.Key.SrcMAC[i]++ }, func(r *flow.Record) {
			r.Key.DstMAC[i]++
		})
	}
	for i, change := range changes {
		n := id(change)
		if seen[n] {
			t.Errorf("change %d: another flow has the id, too", i)
		}
		seen[n] = true
	}
	ids := map[uint64]bool{}
	for i := range 1000 { // that begin at once
		r := record(i)
		ids[flowID(&r.Key, 1, r.Start)] = true
	}
	if len(ids) < 998 {
		t.Errorf("%d ids of 1000 flows", len(ids))
	}
}

// The standard shape has a template for every kind of record, and both directions of a biflow add up.
func TestStandardHasAFormForEveryRecord(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	all := kinds()
	r.send(all...)
	flows := c.await(len(all))
	if len(flows) != len(all) {
		t.Fatalf("%d records of %d", len(flows), len(all))
	}
	seen := map[uint64]bool{}
	for i, f := range flows {
		seen[number(t, f, "template")] = true
		if got := number(t, f, "packetDeltaCount"); got != all[i].Delta.Packets {
			t.Errorf("record %d: %d packets", i, got)
		}
		if both := all[i].Reverse; both != nil {
			if number(t, f, "reversePacketDeltaCount") != both.Delta.Packets || number(t, f, "biflowDirection") != 1 ||
				number(t, f, "reverseFlowStartMilliseconds") != uint64(both.Delta.First) {
				t.Errorf("record %d: reverse of %v", i, f)
			}
		}
	}
	if len(seen) != 18 {
		t.Errorf("templates %v were used, want 18", seen)
	}
}

// RFC 5471 §3.4.1 to §3.4.5: scopes, and the options of metering and exporting process.
func TestRFC5471_3_4_OptionsTellWhoExportsWhatIsCalledHowAndWhatIsMissing(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	r.state.Sampling = 9
	r.state.Losses = []flow.Loss{{Point: 1, Packets: 5, Bytes: 500}, {Point: 2, Packets: 7, Bytes: 700}}
	r.pass(0)
	c.awaitMessages(2)
	find := func(element string) map[string]ipfix.Value {
		found := c.with(element)
		if len(found) == 0 {
			t.Fatalf("no record has %s", element)
		}
		return found[len(found)-1]
	}
	if o := find("observationDomainName"); text(o, "observationDomainName") != `"lab on host1"` ||
		text(o, "exporterIPv4Address") != "127.0.0.1" {
		t.Errorf("exporter %v", o)
	}
	if o := find("samplingPacketSpace"); number(t, o, "samplingPacketSpace") != 9 ||
		number(t, o, "samplingPacketInterval") != 1 || number(t, o, "selectorAlgorithm") != 1 {
		t.Errorf("sampling %v", o)
	}
	if o := find("samplingInterval"); number(t, o, "samplingInterval") != 10 || len(o) != 3 {
		t.Errorf("sampling %v", o)
	}
	if o := c.with("interfaceName"); len(o) != 3 || text(o[0], "interfaceName") != `"vm1"` ||
		number(t, o[0], "ingressInterface") != 10 ||
		text(o[0], "interfaceDescription") != `"switch lab, port group web, device tap1"` {
		t.Errorf("interfaces %v", o)
	}
	var all uint64
	for _, o := range c.with("ignoredPacketTotalCount") {
		if _, point := o["observationPointId"]; !point {
			all = number(t, o, "ignoredPacketTotalCount")
		}
	}
	if all != 12 {
		t.Errorf("%d packets were ignored in all, want 12", all)
	}
	// When a slot gets another port its count begins anew, but the sum continues.
	r.state.Losses = []flow.Loss{{Point: 1, Packets: 2, Bytes: 200}}
	r.x.Tick(r.now, func() meter.State { return r.state })
	if r.x.ignored.total.Packets != 14 {
		t.Errorf("%d packets were ignored in all, want 14", r.x.ignored.total.Packets)
	}
}

// The names of many ports are sent in portions, the name of a new one at once.
func TestNamesOfManyPortsAreSpreadOverTime(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	r.pass(0)
	c.awaitMessages(2)
	r.state.Points = flow.Points{}
	for slot := range uint16(500) {
		r.state.Points[slot+1] = flow.Point{ID: plan.PortID{Switch: "lab", Name: fmt.Sprint("vm", slot)},
			Number: uint32(slot) + 100}
	}
	told := map[string]bool{}
	for _, want := range []int{200, 400, 500, 500} {
		n := len(c.messages)
		r.pass(time.Second)
		if len(told) < 500 {
			c.awaitMessages(n + 1)
		}
		for _, o := range c.with("interfaceName") {
			if number(t, o, "ingressInterface") >= 100 {
				told[text(o, "interfaceName")] = true
			}
		}
		if len(told) != want {
			t.Fatalf("%d names were told, want %d", len(told), want)
		}
	}
}
