package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Member is one of etcd's members.
type Member struct {
	ID       uint64   `json:"id"`
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerURLs,omitempty"`
	Leader   bool     `json:"leader"`
	Learner  bool     `json:"learner,omitempty"`
	// Self is the member that this process runs.
	Self bool `json:"self,omitempty"`
	// Health is what the member says of itself; nil for other members of an embedded cluster: each answers its own
	// controller alone.
	Health *Health `json:"health,omitempty"`
	// Error says why a member that should answer doesn't.
	Error string `json:"error,omitempty"`
}

// Health is what a member says of itself.
type Health struct {
	Version string `json:"version"`
	// Size is what the database takes on disk, InUse what of it is needed.
	Size  int64 `json:"sizeBytes"`
	InUse int64 `json:"inUseBytes"`
	// Lag is how many entries of the cluster's log the member has yet to apply.
	Lag    uint64   `json:"lag"`
	Errors []string `json:"errors,omitempty"`
}

// Alarm is one that etcd raised; it takes no writes while there is one of NOSPACE.
type Alarm struct {
	Member uint64 `json:"member"`
	Kind   string `json:"kind"`
}

// Status is the state of the store.
type Status struct {
	Cluster
	Embedded bool `json:"embedded"`
	// Revision is that of the memory. Stale says why it may be old; empty = it is current.
	Revision int64    `json:"revision"`
	Stale    string   `json:"stale,omitempty"`
	Leader   uint64   `json:"leader"`
	Members  []Member `json:"members"`
	Alarms   []Alarm  `json:"alarms,omitempty"`
	// Quota is the size at which writes are refused; 0 = unknown.
	Quota int64 `json:"quotaBytes"`
	// Compacted is the last revision that this controller compacted, Defragmented when it last defragmented a member.
	Compacted    int64     `json:"compacted,omitempty"`
	CompactedAt  time.Time `json:"compactedAt,omitzero"`
	Defragmented time.Time `json:"defragmentedAt,omitzero"`
}

// Status asks etcd for its state. Without a quorum it answers with what is known, and says that it is stale.
func (s *Store) Status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	st := Status{Cluster: s.Cluster(), Embedded: s.etcd != nil, Revision: s.Revision(), Quota: s.opts.QuotaBytes}
	if err := s.Stale(); err != nil {
		st.Stale = err.Error()
	}
	s.keeper.report(&st)
	// Each member answers for itself, also when there is no quorum.
	members, err := s.client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return st, &Unavailable{Cause: fmt.Errorf("etcd's members: %w", err)}
	}
	for _, m := range members.Members {
		st.Members = append(st.Members, s.member(ctx, m, &st))
	}
	for i := range st.Members {
		st.Members[i].Leader = st.Leader != 0 && st.Members[i].ID == st.Leader
	}
	slices.SortFunc(st.Members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	st.Alarms, err = s.alarms(ctx)
	return st, err
}

func (s *Store) member(ctx context.Context, m *etcdserverpb.Member, st *Status) Member {
	out := Member{ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs, Learner: m.IsLearner}
	out.Self = s.etcd != nil && uint64(s.etcd.Server.MemberID()) == m.ID
	endpoints := m.ClientURLs
	if s.etcd != nil {
		endpoints = []string{""} // the client is that of the own member
		if !out.Self {
			return out
		}
	}
	err := errors.New("it has no URL for clients")
	for _, e := range endpoints {
		var resp *clientv3.StatusResponse
		if resp, err = s.client.Status(ctx, e); err == nil {
			out.Health = &Health{Version: resp.Version, Size: resp.DbSize, InUse: resp.DbSizeInUse,
				Lag: resp.RaftIndex - min(resp.RaftAppliedIndex, resp.RaftIndex), Errors: resp.Errors}
			st.Leader = cmp.Or(resp.Leader, st.Leader)
			st.Quota = cmp.Or(st.Quota, resp.DbSizeQuota)
			return out
		}
	}
	out.Error = err.Error()
	return out
}

// alarms are those that etcd has raised. An embedded member is asked for what it knows: the call for them is a write to
// the logs of all members, also of those whose disks are full.
func (s *Store) alarms(ctx context.Context) (list []Alarm, err error) {
	var raised []*etcdserverpb.AlarmMember
	if s.etcd != nil {
		raised = s.etcd.Server.Alarms()
	} else {
		resp, err := s.client.AlarmList(ctx)
		if err != nil {
			return nil, &Unavailable{Cause: fmt.Errorf("etcd's alarms: %w", err)}
		}
		raised = resp.Alarms
	}
	for _, a := range raised {
		list = append(list, Alarm{Member: a.MemberID, Kind: a.Alarm.String()})
	}
	return list, nil
}
