package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/lab/report/page"
)

// sampleBenchmark is a benchmark of four hosts; what arrives at one of them is slow.
func sampleBenchmark() *api.NetworkBenchmark {
	b := &api.NetworkBenchmark{Rate: 200_000_000, Duration: 5 * time.Second, Hosts: []string{"esx1", "esx2", "esx3",
		"esx4"},
		Without: []api.BenchmarkLeftOut{{Host: "esx5", Reason: "it is not connected"}},
		Findings: []string{"3 of 12 pairs are slow or lose frames (esx1/uplink1 to esx3/uplink1, esx2/uplink1 to " +
			"esx3/uplink1, esx4/uplink1 to esx3/uplink1); they arrive at esx3/uplink1"}}
	for i, from := range b.Hosts {
		for k, to := range b.Hosts {
			if from == to {
				continue
			}
			p := api.BenchmarkPair{From: from, FromUplink: "uplink1", To: to, ToUplink: "uplink1", Switch: "prod",
				VLAN: uint32(10 + 10*((i+k)%2)), Rate: 66_666_666, Offered: 66_640_000, Throughput: 66_640_000,
				Sent:  27766,
				Pings: 100, Replies: 100, P50: 412 * time.Microsecond, P99: 1933 * time.Microsecond, Faults: []string{}}
			if to == "esx3" {
				p.Throughput, p.Lost, p.P99 = 10_820_000, 23258, 41300*time.Microsecond
				p.Faults = []string{"slow", "lossy"}
			}
			b.Pairs = append(b.Pairs, p)
		}
	}
	return b
}

// The tables are at most 100 columns wide, and have each pair with a fault, or all.
func TestS109_TheTablesOfABenchmark(t *testing.T) {
	for _, c := range []struct {
		name string
		all  bool
		rows int
	}{{"pairs with faults", false, 3}, {"all pairs", true, 12}} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := (&benchmarkFlags{all: c.all}).write(&out, cli.Deps{Getenv: func(string) string { return "" }},
				sampleBenchmark()); err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, line := range strings.Split(out.String(), "\n") {
				if len([]rune(line)) > 100 {
					t.Errorf("%d columns: %s", len([]rune(line)), line)
				}
				if strings.HasPrefix(line, "esx") && strings.Contains(line, "/uplink1  esx") {
					rows++
				}
			}
			for _, want := range []string{"esx1      -  66.6M  10.8M  66.6M", "83.8%", "41.3ms", "slow, lossy",
				"they arrive at esx3/uplink1", "host esx5 took no part: it is not connected", "12 pairs"} {
				if !strings.Contains(strings.Join(strings.Fields(out.String()), " "),
					strings.Join(strings.Fields(want), " ")) {
					t.Errorf("it lacks %q", want)
				}
			}
			if t.Logf("\n%s", out.String()); rows != c.rows {
				t.Errorf("%d rows", rows)
			}
		})
	}
}

// The report is one file that needs nothing else: four matrices with each pair of hosts, faults marked by a sign, what
// they share, and the pairs with faults first.
func TestS109_TheReportOfABenchmark(t *testing.T) {
	file := filepath.Join(t.TempDir(), "benchmark.html")
	b := sampleBenchmark()
	f, err := page.Check(file)
	if err != nil {
		t.Fatal(err)
	}
	q := &benchmarkFlags{page: cli.ReportFile{File: f, Command: "heddle health benchmark"}}
	r := q.report(b, time.Now())
	if err := q.page.Write(r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h1>Health benchmark</h1>", "they arrive at esx3/uplink1", "Throughput, bit/s",
		"Frames lost, %", "Delay, 99th percentile", "Duplicates, frames", "▲ 10.8M</text>", "▲ 83.8%</text>",
		"esx1 to esx3: 10.8M (uplink1 to uplink1: slow, lossy)", "host esx5 took no part: it is not connected"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("it lacks %q", want)
		}
	}
	if n := bytes.Count(text, []byte("<svg")); n != 4 {
		t.Errorf("%d pictures", n)
	}
	if bytes.Contains(text, []byte("Processors")) {
		t.Error("it has the processors of the machine that asked")
	}
	for i, row := range r.Rows {
		if to := row.Get("to"); (to == "esx3/uplink1") != (i < 3) {
			t.Errorf("row %d is to %v", i, to)
		}
	}
}

// The report of a large fleet is bounded: the hosts with most faults are drawn, and pairs with faults are listed first.
func TestS109_TheReportOfALargeFleet(t *testing.T) {
	b := &api.NetworkBenchmark{Rate: 1e6, Duration: time.Second}
	for i := range 100 {
		b.Hosts = append(b.Hosts, fmt.Sprintf("esx%03d", i))
	}
	for _, from := range b.Hosts {
		for _, to := range b.Hosts {
			p := api.BenchmarkPair{From: from, To: to, FromUplink: "u", ToUplink: "u", Sent: 1, Throughput: 1}
			if to == "esx099" {
				p.Faults = []string{"slow"}
			}
			if from != to {
				b.Pairs = append(b.Pairs, p)
			}
		}
	}
	r := (&benchmarkFlags{}).report(b, time.Now())
	for _, m := range r.Matrices {
		if len(m.Names) != mostDrawn || m.Names[mostDrawn-1] != "esx099" {
			t.Errorf("%s: %d hosts, the last %s", m.Title, len(m.Names), m.Names[len(m.Names)-1])
		}
	}
	if len(r.Rows) != mostListed || r.Rows[98].Get("faults") != "slow" || r.Rows[99].Get("faults") != "-" {
		t.Errorf("%d rows", len(r.Rows))
	}
	for _, want := range []string{"have the 48 hosts of 100", "has 500 of 9900 pairs"} {
		if !strings.Contains(strings.Join(r.Notes, "\n"), want) {
			t.Errorf("it does not say %q: %q", want, r.Notes)
		}
	}
	if none := (&benchmarkFlags{}).report(&api.NetworkBenchmark{Stopped: "x"}, time.Now()); len(none.Matrices) > 0 {
		t.Error("matrices of nothing")
	}
}

// Flags out of range are named.
func TestS109_BadFlagsOfABenchmark(t *testing.T) {
	for _, c := range []struct{ name, rate, want string }{
		{"no number", "fast", "--rate fast: "}, {"too much", "1.1G", "--rate 1.1G: "}, {"too little", "99k",
			"--rate 99k"},
		{"negative", "-1M", "--rate -1M"}, {"no rate at all", "", "--rate : "}, {"not a number", "NaN", "--rate NaN"},
		{"a unit alone", "M", "--rate M: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := &benchmarkFlags{rate: c.rate}
			q.Duration = time.Second
			if err := q.read(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
	for text, want := range map[string]uint64{"100k": 100_000, "10M": 10_000_000, "1G": 1_000_000_000,
		"2.5M":   2_500_000,
		"123456": 123_456} {
		t.Run(text, func(t *testing.T) {
			if got, err := bitRate(text); err != nil || got != want {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
	q := &benchmarkFlags{rate: "1M"}
	q.Duration, q.Hosts = time.Second, []string{"esx1", "esx1"}
	if err := q.read(); err == nil || !strings.Contains(err.Error(), "two hosts at least") {
		t.Error(err)
	}
	for _, d := range []time.Duration{0, -time.Second, time.Minute + 1} {
		q := &benchmarkFlags{rate: "1M"}
		q.Duration = d
		if err := q.read(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--duration %v", d)) {
			t.Errorf("%v: %v", d, err)
		}
	}
}
