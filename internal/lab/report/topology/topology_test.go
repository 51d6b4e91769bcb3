package topology

import (
	"encoding/xml"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/scenario"
)

// lab has a node of every kind: guests, a nested host with a guest of its own, two cables to a switch, and routers.
const lab = `
name: every
title: one of <each>
hosts:
- name: esx1
  config:
    switches:
    - {name: lab, kind: distributed, uplinks: [{name: uplink1, device: eno1}, {name: uplink2, device: eno2}],
       portGroups: [{name: web, vlan: {access: 10}}, {name: nested, vlan: {trunk: ["0-4094"]}, security: {forgedTransmits: accept}}]}
    ports:
    - {name: vm1, switch: lab, portGroup: web, device: vm1}
    - {name: fw, switch: lab, portGroup: web, device: fw}
    - {name: n1, switch: lab, portGroup: nested, device: n1}
- name: inner
  nics: [{device: vmnic0, host: esx1, port: n1}]
  config:
    switches: [{name: vSwitch0, uplinks: [{name: uplink1, device: vmnic0}], portGroups: [{name: vms}]}]
    ports: [{name: deep, switch: vSwitch0, portGroup: vms, device: deep}]
vms:
- {name: vm1, host: esx1, addresses: [192.0.2.1/24]}
- {name: deep, host: inner}
switches: [{name: tor}]
routers:
- {name: gw, interfaces: [{device: eth0, addresses: [192.0.2.254/24]}]}
- {name: fw, interfaces: [{device: eth0, addresses: [192.0.2.253/24], host: esx1, port: fw}]}
links:
- {a: esx1/eno1, b: tor/p1, rate: 10Gbit}
- {a: esx1/eno2, b: tor/p2, rate: 10Gbit}
- {a: gw/eth0, b: tor/p3, rate: 10Gbit}
`

func parsed(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("lab.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// boxes returns the vertical positions of the names: a name is found by its text.
func boxes(t *testing.T, svg string) map[string]float64 {
	t.Helper()
	at := map[string]float64{}
	for _, m := range regexp.MustCompile(`y="([^"]+)" text-anchor="middle"><tspan class="kind">([^<]+) </tspan>([^<]+)<`).
		FindAllStringSubmatch(svg, -1) {
		y, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		at[m[2]+" "+m[3]] = y
	}
	return at
}

func TestOf_DrawsEveryNodeAboveWhatCarriesIt(t *testing.T) {
	p := Of(parsed(t, lab))
	var any struct{}
	if err := xml.Unmarshal([]byte(p.SVG), &any); err != nil {
		t.Fatalf("%v\n%s", err, p.SVG)
	}
	at := boxes(t, p.SVG)
	order := []string{"VM deep", "nested host inner", "host esx1", "physical switch tor", "router gw"}
	for i := 1; i < len(order); i++ {
		if !(at[order[i-1]] > 0 && at[order[i-1]] < at[order[i]]) {
			t.Errorf("%s at %v is not above %s at %v", order[i-1], at[order[i-1]], order[i], at[order[i]])
		}
	}
	if at["VM vm1"] != at["VM fw"] || at["VM vm1"] >= at["host esx1"] || len(at) != 7 {
		t.Errorf("boxes at %v", at)
	}
	for _, want := range []string{"web, VLAN 10</text>", "vmnic0: nested, trunk</text>", "uplink1 (eno1)</text>",
		"uplink2 (eno2)</text>", "192.0.2.254</text>", "links of 10.0 Gb/s</text>", "switch lab (distributed)</text>"} {
		if !strings.Contains(p.SVG, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if n := strings.Count(p.SVG, `class="wire"`); n != 7 {
		t.Errorf("%d wires", n)
	}
	if p.Title != "The lab every: one of <each>" || !strings.Contains(p.SVG, "aria-label=\"The lab every: one of "+
		"&lt;each&gt;. host esx1 carries inner, vm1, fw and is cabled to tor, tor; nested host inner carries deep; "+
		"physical switch tor; router gw is cabled to tor.\"") {
		t.Errorf("title %q, picture\n%s", p.Title, p.SVG[:600])
	}
}

func TestOf_CountsTheGuestsThatAreTooMany(t *testing.T) {
	text := lab
	for _, n := range strings.Fields("a b c d e f g h") {
		text = strings.Replace(text, "- {name: deep, host", "- {name: x"+n+", host: esx1}\n- {name: deep, host", 1)
		text = strings.Replace(text, "    - {name: fw, sw", "    - {name: x"+n+
			", switch: lab, portGroup: web, device: x"+n+"}\n    - {name: fw, sw", 1)
	}
	at := boxes(t, Of(parsed(t, text)).SVG)
	if at["VM 3 more"] == 0 || at["VM xe"] == 0 || at["VM xf"] != 0 {
		t.Errorf("%v", at)
	}
}

// TestOf_NoTwoBoxesOverlap checks the labs that come with Heddle.
func TestOf_NoTwoBoxesOverlap(t *testing.T) {
	rect := regexp.MustCompile(`<rect class="box \w+" x="([^"]+)" y="([^"]+)" width="([^"]+)" height="([^"]+)"`)
	for _, name := range experiment.ScenarioNames() {
		t.Run(name, func(t *testing.T) {
			s, err := experiment.Scenario(name)
			if err != nil {
				t.Fatal(err)
			}
			var all [][4]float64
			for _, m := range rect.FindAllStringSubmatch(Of(s).SVG, -1) {
				var r [4]float64
				for i := range r {
					if r[i], err = strconv.ParseFloat(m[i+1], 64); err != nil {
						t.Fatal(err)
					}
				}
				for _, o := range all {
					if r[0] < o[0]+o[2] && o[0] < r[0]+r[2] && r[1] < o[1]+o[3] && o[1] < r[1]+r[3] {
						t.Errorf("%v lies on %v", r, o)
					}
				}
				all = append(all, r)
			}
			if len(all) < 3 {
				t.Errorf("%d boxes", len(all))
			}
		})
	}
}

func TestDistinct_ShowsALabOnce(t *testing.T) {
	s, other := parsed(t, lab), parsed(t, strings.Replace(lab, "name: every", "name: other", 1))
	var titles []string
	for _, p := range Distinct(s, other, s) {
		titles = append(titles, p.Title)
	}
	if got := strings.Join(titles, "; "); got != "The lab every: one of <each>; The lab other: one of <each>" {
		t.Error(got)
	}
	if list := OfText("no: scenario"); list != nil {
		t.Errorf("%v", list)
	}
	if list := OfText(lab); len(list) != 1 || list[0] != (report.Picture(Of(s))) {
		t.Error("the text's picture is not the scenario's")
	}
}
