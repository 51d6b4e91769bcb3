package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/spec"
)

func TestResolve_IPFIX(t *testing.T) {
	p := mustResolve(t, mustParse(t, `switches:
  - {name: plain}
  - name: lab
    ipfix:
      collectors: [{address: Flows.example.net}, {address: "2001:db8::9", port: 2055, shape: vds, transport: tcp},
        {address: 192.0.2.9, transport: tls, ca: /etc/ca.pem, serverName: flows}]
      observationDomainId: 4294967295
      switchIpAddress: 192.0.2.1
      activeFlowTimeout: 30m
      idleFlowTimeout: 90s
      samplingRate: 4096
      internalFlowsOnly: true
      biflow: true
      templates: {every: 10m, packets: 0}
      maxFlows: 2000
      mtu: 1280
`), nil)
	want := IPFIX{ActiveTimeout: time.Minute, IdleTimeout: 15 * time.Second, TemplateEvery: time.Minute,
		TemplatePackets: 1000, MaxFlows: 262144}
	if diff := cmp.Diff(want, p.Switch("plain").IPFIX); diff != "" {
		t.Error(diff)
	}
	want = IPFIX{
		Collectors: []Collector{
			{Address: "flows.example.net", Port: 4739, Shape: spec.ShapeStandard, Transport: spec.TransportUDP},
			{Address: "2001:db8::9", Port: 2055, Shape: spec.ShapeVDS, Transport: spec.TransportTCP},
			{Address: "192.0.2.9", Port: 4740, Shape: spec.ShapeStandard, Transport: spec.TransportTLS,
				TLS: TLS{CA: "/etc/ca.pem", ServerName: "flows"}},
		},
		ObservationDomain: 1<<32 - 1, SwitchAddress: "192.0.2.1", ActiveTimeout: 30 * time.Minute,
		IdleTimeout:  90 * time.Second,
		SamplingRate: 4096, InternalOnly: true, Biflow: true, TemplateEvery: 10 * time.Minute, MaxFlows: 2000,
		MTU: 1280,
	}
	got := p.Switch("lab").IPFIX
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An uplink has the monitoring that is written at it and inherits nothing; ports inherit field by field (D3, D6).
func TestResolve_Monitoring(t *testing.T) {
	p := mustResolve(t, mustParse(t, `switches:
  - name: lab
    defaults: {monitoring: {ipfix: true, observe: ingress}}
    uplinks: [{name: u1}, {name: u2, monitoring: {ipfix: true}}, {name: u3, monitoring: {ipfix: true, observe: egress}}]
    portGroups: [{name: g}, {name: h, monitoring: {observe: egress}, overrides: {monitoring: true}}]
  - name: other
    uplinks: [{name: u1, monitoring: {observe: egress}}]
ports:
  - {name: a, switch: lab, portGroup: g}
  - {name: b, switch: lab, portGroup: h}
  - {name: c, switch: lab, portGroup: h, monitoring: {ipfix: false}}
  - {name: d, switch: lab, portGroup: h, monitoring: {observe: both}}
`), nil)
	for name, want := range map[string]string{"u1": "off", "u2": "ingress and egress", "u3": "egress", "a": "ingress",
		"b": "egress", "c": "off", "d": "ingress and egress"} {
		t.Run(name, func(t *testing.T) {
			id := PortID{"lab", name}
			var m Monitoring
			if u := p.Uplink(id); u != nil {
				m = u.Monitoring
			} else {
				m = p.Port(id).Policy.Monitoring
			}
			if m.String() != want {
				t.Errorf("%s: %s, want %s", name, m, want)
			}
			in, out := want == "ingress" || want == "ingress and egress", want == "egress" ||
				want == "ingress and egress"
			if m.Ingress() != in || m.Egress() != out {
				t.Errorf("%s: ingress %v egress %v", name, m.Ingress(), m.Egress())
			}
		})
	}
	if from := p.Uplink(PortID{"lab", "u2"}).Monitoring; from.IPFIX.From != FromUplink ||
		from.Observe.From != FromBuiltIn {
		t.Errorf("u2: %+v", from)
	}
	if !p.Switch("lab").Metered() || p.Switch("other").Metered() {
		t.Error("lab meters, other does not")
	}
}
