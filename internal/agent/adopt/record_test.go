package adopt

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/host/hostnet"
	"heddle/internal/spec"
)

func addrs(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}

func TestS81_WhenAMoveStaysAndWhenItIsTakenBack(t *testing.T) {
	const moved = 100 * time.Second
	two, named := addrs("192.0.2.1", "192.0.2.2", "2001:db8::1"), addrs("192.0.2.1", "192.0.2.2")
	for _, c := range []struct {
		what               string
		gateways, answered []netip.Addr
		named, agreed      bool
		after              time.Duration
		want               Verdict
		why                string
	}{
		{"nothing has happened yet", two, nil, false, false, 0, Wait, ""},
		{"the gateway is silent, not for long", two, nil, false, false, 29 * time.Second, Wait, ""},
		{"the gateway is silent", two, nil, false, false, 30 * time.Second, Revert, "did not answer within 30s"},
		{"one family is silent", two, addrs("192.0.2.2"), false, false, 30 * time.Second, Revert,
			"gateway 2001:db8::1 did"},
		{"one of each family answers", two, addrs("192.0.2.2", "2001:db8::1"), false, false, time.Minute, Wait, ""},
		{"of those that were named each has to answer", named, addrs("192.0.2.2"), true, true, 30 * time.Second, Revert,
			"192.0.2.1"},
		{"answered and confirmed", two, addrs("192.0.2.1", "2001:db8::1"), false, true, time.Second, Keep, ""},
		{"confirmed before the gateway answers", two, nil, false, true, time.Second, Wait, ""},
		{"confirmed, and the gateway is silent", two, nil, false, true, 30 * time.Second, Revert, "did not answer"},
		{"not confirmed", two, two, false, false, 2 * time.Minute, Revert, "not confirmed within 2m0s"},
		{"no gateway is known, not confirmed yet", nil, nil, false, false, time.Minute, Wait, ""},
		{"no gateway is known, not confirmed", nil, nil, false, false, time.Hour, Revert, "not confirmed"},
		{"no gateway is known, confirmed", nil, nil, false, true, time.Second, Keep, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &Record{Phase: Waiting, Gateways: c.gateways, Answered: c.answered, Named: c.named, Agreed: c.agreed,
				MovedAt: moved, GatewayWithin: 30 * time.Second, ConfirmWithin: 2 * time.Minute}
			if got, why := r.Judge(moved + c.after); got != c.want || !strings.Contains(why.Text(), c.why) ||
				why.None() != (c.why == "") {
				t.Errorf("%s: %v %+v", c.what, got, why)
			}
			for _, p := range []Phase{Moving, Confirmed, Reverting} {
				r.Phase = p
				if got, _ := r.Judge(moved + time.Hour); got != Wait {
					t.Errorf("%s, %s: %v", c.what, p, got)
				}
			}
		})
	}
}

func TestS81_AReleaseStaysWhenTheGatewayAnswersByTheDevice(t *testing.T) {
	const moved = 100 * time.Second
	gateways := addrs("192.0.2.1", "2001:db8::1")
	for _, c := range []struct {
		what     string
		answered []netip.Addr
		after    time.Duration
		want     Verdict
		why      string
	}{
		{"nobody has answered yet", nil, 29 * time.Second, Wait, ""},
		{"one has", gateways[:1], 29 * time.Second, Wait, ""},
		{"all have, at once", gateways, 0, Keep, ""},
		{"all have, at the last moment", gateways, time.Minute, Keep, ""},
		{"one is silent", gateways[:1], 30 * time.Second, Revert,
			"gateway 2001:db8::1 did not answer by device eth0 within 30s"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &Record{Phase: Released, Config: &hostnet.Config{Device: "eth0"}, Gateways: gateways,
				Answered: c.answered, MovedAt: moved, GatewayWithin: 30 * time.Second}
			if got, why := r.JudgeRelease(moved + c.after); got != c.want || why.Text() != c.why {
				t.Errorf("%s: %v %+v", c.what, got, why)
			}
			r.Phase = Confirmed
			if got, _ := r.JudgeRelease(moved + time.Hour); got != Wait {
				t.Errorf("%s, confirmed: %v", c.what, got)
			}
		})
	}
}

func TestJournalComesBackAndADamagedOneIsAnError(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenJournal(dir)
	if err != nil || len(j.Records) != 0 {
		t.Fatal(err)
	}
	r := &Record{Phase: Waiting, Step: 7, Port: spec.Port{Name: "vmk0"}, Config: &hostnet.Config{Device: "eth0",
		Addresses: []hostnet.Object{{Message: []byte{1, 2}, Text: "x"}}}}
	j.Add(r)
	if err := j.Save(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenJournal(dir)
	if err != nil || again.Of("eth0") == nil || again.Of("eth0") != again.Of("vmk0") || again.Open().Step != 7 ||
		!slices.Equal(again.Records[0].Config.Addresses[0].Message, []byte{1, 2}) {
		t.Fatalf("%v, %+v", err, again)
	}
	again.Remove(again.Records[0])
	if err := again.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "adoptions.json")); !os.IsNotExist(err) {
		t.Errorf("the empty journal is left: %v", err)
	}
	for _, text := range []string{"", "{", `{"format": 99}`} {
		if err := os.WriteFile(filepath.Join(dir, "adoptions.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenJournal(dir); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

func TestDescribe_SaysWhoIsAskedAndWhichAnswersKeepTheMove(t *testing.T) {
	const nobody = "ask nobody whether the network is reached: no default gateway goes by eno1"
	for _, c := range []struct {
		what     string
		gateways []netip.Addr
		named    bool
		want     string
	}{
		{"no gateway is known", nil, false, nobody},
		{"one", addrs("192.0.2.1"), false, "ask 192.0.2.1 by vmk0; go back unless it answers within 30s"},
		{"two of one family", addrs("192.0.2.1", "192.0.2.2"), false,
			"ask 192.0.2.1, 192.0.2.2 by vmk0; go back unless one of them answers within 30s"},
		{"named", addrs("192.0.2.1", "192.0.2.2"), true,
			"ask 192.0.2.1, 192.0.2.2 by vmk0; go back unless each of them answers within 30s"},
		{"one of each family", addrs("192.0.2.1", "2001:db8::1"), false,
			"ask 192.0.2.1, 2001:db8::1 by vmk0; go back unless each of them answers within 30s"},
		{"more of one family", addrs("192.0.2.1", "192.0.2.2", "2001:db8::1"), false,
			"ask 192.0.2.1, 192.0.2.2, 2001:db8::1 by vmk0; go back unless one of each address family " +
				"answers within 30s"},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := &Record{Port: spec.Port{Name: "vmk0", Device: "vmk0"}, Config: &hostnet.Config{Device: "eno1"},
				Gateways: c.gateways, Named: c.named, GatewayWithin: 30 * time.Second, ConfirmWithin: 2 * time.Minute}
			lines := r.Describe()
			asks, last := lines[len(lines)-2], lines[len(lines)-1]
			if asks != c.want ||
				last != "go back unless \"heddle host-port confirm vmk0\" is given within 2m0s" {
				t.Errorf("%q\n%q\nwant %q", asks, last, c.want)
			}
		})
	}
}
