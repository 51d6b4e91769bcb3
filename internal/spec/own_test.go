package spec

import (
	"reflect"
	"testing"
)

func TestS10_WhatAPortSetsAnewIsLaidOverWhatItHadFieldByField(t *testing.T) {
	yes, no, active := true, false, []string{"uplink2"}
	before := Policy{VLAN: &VLAN{Access: 66}, Blocked: &yes, Security: Security{Promiscuous: Accept,
		MACLearning: MACLearning{Ageing: "1m"}}}
	set := Policy{VLAN: &VLAN{Trunk: []string{"5"}}, Blocked: &no, Security: Security{ForgedTransmits: Accept},
		Teaming: Teaming{Active: &active}}
	want := Policy{VLAN: &VLAN{Trunk: []string{"5"}}, Blocked: &no,
		Security: Security{Promiscuous: Accept, ForgedTransmits: Accept, MACLearning: MACLearning{Ageing: "1m"}},
		Teaming:  Teaming{Active: &active}}
	if got := set.Over(before); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if before.VLAN.Access != 66 || before.VLAN.Trunk != nil {
		t.Errorf("what the port had was changed in place: %+v", before.VLAN)
	}
	if got := (Policy{}).Over(before); !reflect.DeepEqual(got, before) {
		t.Errorf("a port that sets nothing: %+v, want %+v", got, before)
	}
}
