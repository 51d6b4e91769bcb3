package rpc

import (
	"errors"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/peers/members"
)

// A change is held back where, without the controllers whose disks are full and those that do not answer, there is no
// majority; not for those that do not answer alone, as etcd knows them itself.
func TestS128_AMajorityWithoutRoomTakesNoChange(t *testing.T) {
	const full, away, learner = "full", "away", "learner"
	for name, c := range map[string]struct {
		others []string
		held   bool
	}{
		"all well":                 {[]string{"", ""}, false},
		"one of three is full":     {[]string{full, ""}, false},
		"two of three are full":    {[]string{full, full}, true},
		"one is full, one away":    {[]string{full, away}, true},
		"two are away":             {[]string{away, away}, false},
		"one of two is full":       {[]string{full}, true},
		"two of five are full":     {[]string{full, full, "", ""}, false},
		"two are full, one away":   {[]string{full, full, away, ""}, true},
		"a learner is full":        {[]string{learner, ""}, false},
		"a learner, and one voter": {[]string{learner, full, ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			voters := map[string]bool{"c1": true}
			var answers []peers.Answer[*controllerv1.GetControllerResponse]
			for i, is := range c.others {
				id := "c" + string(rune('2'+i))
				a := peers.Answer[*controllerv1.GetControllerResponse]{Of: peers.Controller{ID: id, Name: id},
					Got: &controllerv1.GetControllerResponse{}}
				voters[id] = is != learner
				if is == full || is == learner {
					a.Got.NoRoom = "it has 3 MiB left"
				}
				if is == away {
					a.Err = errors.New("no answer")
				}
				answers = append(answers, a)
			}
			for id, votes := range voters {
				if !votes {
					delete(voters, id)
				}
			}
			why := tooFull(answers, voters)
			if (why != nil) != c.held {
				t.Fatalf("held back: %v", why)
			}
			if why != nil && !strings.Contains(why.Error(), "controller c2: it has 3 MiB left") {
				t.Error(why)
			}
		})
	}
}

// A controller whose store is another one than the cluster's is told apart, and one whose disk is full is named; one
// of an earlier version says neither.
func TestS127_S128_ControllersThatAreNotWellAreNamed(t *testing.T) {
	mine := &controllerv1.GetControllerResponse{Store: "s1", EtcdCluster: "ab", EtcdMember: "1"}
	for name, c := range map[string]struct {
		said  *controllerv1.GetControllerResponse
		state string
		part  string
	}{
		"well": {&controllerv1.GetControllerResponse{Store: "s1", EtcdCluster: "ab", EtcdMember: "2"},
			"up", ""},
		"of an earlier version": {&controllerv1.GetControllerResponse{}, "up", ""},
		"with an empty store": {&controllerv1.GetControllerResponse{Store: "s2", EtcdCluster: "ab"}, "apart",
			"a store of its own"},
		"with a restored store": {&controllerv1.GetControllerResponse{Store: "s1", EtcdCluster: "cd"}, "apart",
			"a store of its own"},
		"with a full disk": {&controllerv1.GetControllerResponse{Store: "s1", EtcdCluster: "ab",
			NoRoom: "it has 3 MiB left"}, "up", "3 MiB left"},
	} {
		t.Run(name, func(t *testing.T) {
			row := members.Shown(peers.Controller{ID: "c2", Name: "c2"},
				peers.Answer[*controllerv1.GetControllerResponse]{Got: c.said}, mine)
			if row.GetState() != c.state || !strings.Contains(row.GetProblem(), c.part) ||
				(c.part == "") != (row.GetProblem() == "") {
				t.Errorf("%+v", row)
			}
		})
	}
}
