package flaps_test

import (
	"fmt"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/flaps"
)

func again(segment, mac string, times int64) *controllerv1.LearnedAgain {
	return &controllerv1.LearnedAgain{Switch: "dvs", Segment: segment, Mac: mac, Port: "p", Times: times}
}

func TestMACsOfSeveralHostsAreJoined(t *testing.T) {
	got := flaps.Join([]flaps.Host{
		{ID: "1", Name: "h1", Again: []*controllerv1.LearnedAgain{again("10", "a", 3), again("20", "b", 2)}},
		{ID: "2", Name: "h2", Again: []*controllerv1.LearnedAgain{again("10", "a", 4), again("10", "b", 2)}},
		{ID: "3", Name: "h3", Again: []*controllerv1.LearnedAgain{again("10", "c", 9)}},
		{ID: "1", Name: "h1", Again: []*controllerv1.LearnedAgain{again("10", "c", 9)}}, // by another controller
	})
	if len(got) != 2 || len(got["1"]) != 1 || len(got["2"]) != 1 {
		t.Fatalf("%v", got)
	}
	if m := got["1"][0]; m.GetHere().GetTimes() != 3 || len(m.GetElsewhere()) != 1 ||
		m.GetElsewhere()[0].GetHost() != "h2" || m.GetElsewhere()[0].GetTimes() != 4 {
		t.Errorf("%v", m)
	}
}

func TestWhatAHostSaysIsBounded(t *testing.T) {
	var list []*controllerv1.LearnedAgain
	for i := range 1000 {
		list = append(list, again("10", fmt.Sprint(i), 2))
	}
	list[0].Mac, list[1].Times, list[2].Port = strings.Repeat("x", 1000), -1, ""
	if n := len(flaps.Checked(list)); n != 61 {
		t.Errorf("%d count", n)
	}
	var hosts []flaps.Host
	for i := range 100 {
		hosts = append(hosts, flaps.Host{ID: fmt.Sprint(i), Name: fmt.Sprint(i),
			Again: []*controllerv1.LearnedAgain{again("10", "a", 2)}})
	}
	if n := len(flaps.Join(hosts)["7"][0].GetElsewhere()); n != 8 {
		t.Errorf("%d hosts are named", n)
	}
}
