package run

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
)

func TestParseIperf(t *testing.T) {
	res, err := parseIperf([]byte(`{"start":{},"end":{
		"sum_sent":{"bytes":1100,"bits_per_second":8800,"retransmits":7,"sender":true},
		"sum_received":{"bytes":1000,"bits_per_second":8000,"sender":true}}}`))
	if err != nil || res != (iperfResult{8000, 1000, 7}) {
		t.Errorf("parseIperf = %+v, %v", res, err)
	}
	for text, says := range map[string]string{
		`{"error":"unable to connect to server: Connection refused"}`: "Connection refused",
		`{"end":{}}`: "nothing was received",
		`oops`:       "unreadable",
	} {
		if _, err := parseIperf([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("parseIperf(%s) = %v, want %q", text, err, says)
		}
	}
}

func TestBusyNote(t *testing.T) {
	if note := busyNote("0.41 0.2 0.1 1/100 4711\n", 2); note != "" {
		t.Errorf("a quiet machine is called busy: %q", note)
	}
	if note := busyNote("7.10 7.33 6.90 9/345 25143\n", 2); !strings.Contains(note, "load 7.1 on 2 CPUs") {
		t.Errorf("a busy machine: %q", note)
	}
}

// measured is an invented result of an experiment.
func measured(t *testing.T, name string, set func(row string, m *Measured)) (*experiment.Experiment, []Measured) {
	t.Helper()
	e, err := experiment.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []Measured
	for i := range e.Rows {
		m := Measured{Row: &e.Rows[i], Throughput: []float64{1e9, 2e9, 3e9}, Stream: []float64{2e9}, RepliesPerPing: 1}
		set(m.Row.Name, &m)
		all = append(all, m)
	}
	return e, all
}

func TestReportOfNestedExperiment(t *testing.T) {
	e, all := measured(t, experiment.Nested, func(row string, m *Measured) {
		if row == "mac-learning-dual" {
			m.Throughput = []float64{10e9, 20e9, 30e9}
		}
		if row == "promiscuous-dual" {
			m.RepliesPerPing = 4
		}
	})
	var out bytes.Buffer
	if err := Report(e, all).Write(&out, report.JSON); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Rows []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 8 {
		t.Fatalf("%d rows, want 8", len(doc.Rows))
	}
	for _, key := range []string{"name", "throughput_bps", "retransmits", "replies_per_ping", "uplink_frames",
		"cpu_s_per_gb"} {
		if _, ok := doc.Rows[0][key]; !ok {
			t.Errorf("the rows have no %q", key)
		}
	}
	if doc.Rows[0]["throughput_bps"] != 2e9 || doc.Rows[4]["ratio"] != 10.0 || doc.Rows[0]["cpu_s_per_gb"] != nil {
		t.Errorf("values of the rows: %v", doc.Rows)
	}
}

func TestNestedTableNamesTheArticlesFigures(t *testing.T) {
	e, all := measured(t, experiment.Nested, func(string, *Measured) {})
	var out bytes.Buffer
	if err := Report(e, all).Write(&out, report.Table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Columns: iperf3 and own: ", "promiscuous-dual",
		"(1) 1.16, (2) 0.177", "(1) 20.8, (2) 8.52", "18 times",
		"48 times", "https://sdn-warrior.org", "names neither the kind of switch"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestExplainClaimsOnlyWhatWasMeasured(t *testing.T) {
	e, all := measured(t, experiment.Nested, func(row string, m *Measured) {
		if row == "promiscuous-dual" {
			m.RepliesPerPing = 4
		}
	})
	if notes := Explain(e, all); len(notes) != 3 || !strings.Contains(notes[0], "every ping got 4.0 replies") {
		t.Errorf("notes: %q", notes)
	}
	e, all = measured(t, experiment.Nested, func(string, *Measured) {})
	if notes := Explain(e, all); strings.Contains(notes[0], "sends them back") {
		t.Errorf("duplicates are explained that were not there: %q", notes[0])
	}
	if notes := Explain(e, all[:1]); len(notes) != 1 {
		t.Errorf("rows that were not measured are explained: %q", notes)
	}
}

func TestExplainPlacementSortsByWhatWasCounted(t *testing.T) {
	e, all := measured(t, experiment.Placement, func(row string, m *Measured) {
		if row == "different-switch" {
			m.PingUplinkFrames = 2
		}
	})
	notes := Explain(e, all)
	if len(notes) != 3 || !strings.Contains(notes[0], "different switch") ||
		strings.Contains(notes[0], "same port group") {
		t.Errorf("notes: %q", notes)
	}
}
