package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// errNotOurs is returned for changes of an existing cluster's members.
var errNotOurs = errors.New("store: the members of an existing etcd cluster are changed by its own tools")

// AddMember adds a member as a learner, which copies the state and has no vote yet: the others go on without it. It
// returns the member's identifier, and what its options need: Peers.Members, with Existing set. The name is the one
// that the new member's options have.
func (s *Store) AddMember(ctx context.Context, name string, urls []string) (id uint64, members []string, err error) {
	if s.etcd == nil {
		return 0, nil, errNotOurs
	}
	var resp *clientv3.MemberAddResponse
	err = whenHealthy(ctx, func() (err error) {
		resp, err = s.client.MemberAddAsLearner(ctx, urls)
		return err
	})
	switch {
	case errors.Is(err, rpctypes.ErrPeerURLExist), errors.Is(err, rpctypes.ErrMemberExist):
		return s.added(ctx, name, urls)
	case errors.Is(err, rpctypes.ErrTooManyLearners):
		return 0, nil, errors.New("store: another member joins at the moment: wait until it is there, or remove it")
	case err != nil:
		return 0, nil, fmt.Errorf("store: adding member %s: %w", name, err)
	}
	return resp.Member.ID, listed(resp.Members, resp.Member.ID, name), nil
}

// added is AddMember for a member that was added before, and has not started or has lost the answer.
func (s *Store) added(ctx context.Context, name string, urls []string) (id uint64, members []string, err error) {
	resp, err := s.client.MemberList(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("store: the members: %w", err)
	}
	for _, m := range resp.Members {
		if slices.Equal(m.PeerURLs, urls) && (m.Name == "" || m.Name == name) {
			return m.ID, listed(resp.Members, m.ID, name), nil
		}
	}
	return 0, nil, fmt.Errorf("store: adding member %s: another member has its address, %s: give this one another, or "+
		"remove the other one", name, strings.Join(urls, ", "))
}

// listed are all members as NAME=URL; the one with that identifier has no name yet.
func listed(all []*etcdserverpb.Member, id uint64, name string) (members []string) {
	for _, m := range all {
		if m.ID == id {
			m.Name = name
		}
		if m.Name == "" { // another one that has not started
			continue
		}
		members = append(members, memberURLs(m)...)
	}
	return members
}

// whenHealthy repeats a change of members until etcd accepts it: it refuses one until the members have been connected
// to each other for five seconds.
func whenHealthy(ctx context.Context, change func() error) error {
	for {
		err := change()
		if !errors.Is(err, rpctypes.ErrUnhealthy) || !pause(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// pause waits; false = the context ended before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func memberURLs(m *etcdserverpb.Member) (urls []string) {
	for _, u := range m.PeerURLs {
		urls = append(urls, m.Name+"="+u)
	}
	return urls
}

// ErrLearning is returned while a learner has not copied enough of the state to vote.
var ErrLearning = errors.New("the member has not copied the state yet")

// Promote gives a learner a vote.
func (s *Store) Promote(ctx context.Context, id uint64) error {
	_, err := s.client.MemberPromote(ctx, id)
	switch {
	case errors.Is(err, rpctypes.ErrMemberLearnerNotReady):
		return ErrLearning
	case errors.Is(err, rpctypes.ErrMemberNotLearner):
		return nil
	}
	return err
}

// RemoveMember removes a member; its data directory is worth nothing from then on.
func (s *Store) RemoveMember(ctx context.Context, id uint64) error {
	if s.etcd == nil {
		return errNotOurs
	}
	return whenHealthy(ctx, func() error {
		_, err := s.client.MemberRemove(ctx, id)
		return err
	})
}

// SetPeerURLs changes the addresses at which the others reach a member.
func (s *Store) SetPeerURLs(ctx context.Context, id uint64, urls []string) error {
	if s.etcd == nil {
		return errNotOurs
	}
	for _, u := range urls {
		if !strings.HasPrefix(u, "https://") {
			return fmt.Errorf("store: peers talk TLS only: %s has to begin with https://", u)
		}
	}
	return whenHealthy(ctx, func() error {
		_, err := s.client.MemberUpdate(ctx, id, urls)
		return err
	})
}
