package incus

import (
	"context"
	"slices"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
)

// following follows one container, c1, whose key user.heddle is that.
func following(p *played, key *string) *Follower {
	return &Follower{Agent: p, Host: p, Warn: func(string, ...any) {},
		Instances: func(context.Context) ([]Instance, error) {
			i := Instance{Name: "c1", Project: "default", Type: "container", Config: map[string]string{
				"volatile.uuid": containerID, "volatile.eth0.host_name": "veth1", "volatile.eth1.host_name": "veth2"},
				Devices: map[string]map[string]string{"eth0": {"type": "nic"}, "eth1": {"type": "nic"}}}
			if *key != "" {
				i.Config[keyPorts] = *key
			}
			return []Instance{i}, nil
		}}
}

func (p *played) names() (list []string) {
	for _, o := range p.ports {
		list = append(list, o.Name)
	}
	return list
}

// An adapter that is taken out of user.heddle is disconnected, also by a follower that has not connected it. A word
// that can't be read cuts nobody off.
func TestAnAdapterThatIsTakenOutIsDisconnected(t *testing.T) {
	p, key := &played{devices: map[string]bool{"veth1": true, "veth2": true}}, "eth0=lab/web eth1=lab/db"
	f := following(p, &key)
	sync := func(want ...string) {
		t.Helper()
		if _, err := f.Sync(t.Context()); err != nil || !slices.Equal(p.names(), want) {
			t.Errorf("%q: ports %q, want %q; %v", key, p.names(), want, err)
		}
	}
	sync("c1/eth0", "c1/eth1")
	key = "eth0=lab/web eth1"
	sync("c1/eth0", "c1/eth1")
	key = "eth0=lab/web"
	sync("c1/eth0")
	f = following(p, &key) // is started anew
	key = ""
	sync()
}

// Ports that are others' stay: those of a domain or an LXC container that is called as the instance, and those that
// were connected by hand.
func TestS150_AnInstanceRemovesItsOwnPortsAlone(t *testing.T) {
	strangers := []api.Port{
		{Name: "c1/eth0", Device: "gone0", VM: vmID, Owner: "libvirt/c1", Origin: api.FromRun},
		{Name: "c1/eth9", Device: "gone1", VM: vmID, Owner: "incus/c1", Origin: api.FromRun},
		{Name: "c1/hand", Device: "gone2", Owner: "c1", Origin: api.FromRun},
	}
	p, key := &played{devices: map[string]bool{"veth2": true}, ports: slices.Clone(strangers)}, "eth1=lab/web"
	f := following(p, &key)
	for _, key = range []string{"eth1=lab/web", "", "eth1=lab/web"} {
		if _, err := f.Sync(t.Context()); err != nil {
			t.Error(err)
		}
		for _, s := range strangers {
			if !slices.Contains(p.names(), s.Name) {
				t.Errorf("%q: port %s of %s is gone: %q", key, s.Name, s.Owner, p.calls)
			}
		}
	}
}

// A port that is left of before a reboot is connected again, though it looks as it is wanted.
func TestS148_APortThatAwaitsItsInstanceIsConnectedAgain(t *testing.T) {
	p, key := &played{devices: map[string]bool{"veth1": true}}, "eth0=lab/web"
	f := following(p, &key)
	if _, err := f.Sync(t.Context()); err != nil || len(p.ports) != 1 {
		t.Fatalf("%v, %+v", err, p.ports)
	}
	p.ports[0].ReasonCode, p.calls = problem.OwnerAwaited, nil
	if _, err := f.Sync(t.Context()); err != nil || !slices.Contains(p.calls, "connect c1/eth0") {
		t.Errorf("%v, calls %q", err, p.calls)
	}
}

func TestWordsOfAKey(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, " a=b  c=d\n": {"a=b", "c=d"}, `eth0="VM Network" eth1=x`: {"eth0=VM Network", "eth1=x"},
		`"eth0=lab/VM Network"`: {"eth0=lab/VM Network"}, "eth0=VM%20Network": {"eth0=VM Network"},
		"eth0=50%25": {"eth0=50%"}, "eth0=50%": {"eth0=50%"}, "eth0=B%C3%BCro": {"eth0=Büro"},
		`eth0="open end`: {"eth0=open end"},
	} {
		if got := words(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
