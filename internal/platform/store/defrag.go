package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func isCompacted(err error) bool { return errors.Is(err, rpctypes.ErrCompacted) }

// due tells whether a member's database is to be defragmented.
func (h *Health) due(above int64, ratio float64) bool {
	return h != nil && h.Size > above && float64(h.Size) > ratio*float64(h.InUse)
}

// defragment does so with the members that need it and that this controller reaches: the followers first, the leader
// last, since a member serves nothing meanwhile.
func (k *keeper) defragment(ctx context.Context, above int64, ratio float64) error {
	st, err := k.s.Status(ctx)
	if err != nil {
		return err
	}
	members := slices.DeleteFunc(slices.Clone(st.Members), func(m Member) bool { return !m.Health.due(above, ratio) })
	slices.SortStableFunc(members, func(a, b Member) int {
		switch {
		case a.Leader == b.Leader:
			return 0
		case b.Leader:
			return -1
		}
		return 1
	})
	for _, m := range members {
		if err := k.defragmentMember(ctx, m, st.Members); err != nil {
			return fmt.Errorf("defragmenting member %s: %w", m.Name, err)
		}
		k.note(0, true)
	}
	return nil
}

func (k *keeper) defragmentMember(ctx context.Context, m Member, all []Member) error {
	if k.s.etcd == nil {
		return k.defragmentOutside(ctx, m)
	}
	// An embedded leader hands over before it pauses. Others defragment in their own controllers.
	for _, next := range all {
		if m.Leader && next.ID != m.ID && !next.Learner {
			if _, err := k.s.client.MoveLeader(ctx, next.ID); err == nil {
				break
			}
		}
	}
	// The in-process client has no Defragment: its server side expects a health service, which only listeners have.
	return k.s.etcd.Server.Backend().Defrag()
}

// defragmentOutside asks a member of an existing cluster by one of the URLs that it has for clients.
func (k *keeper) defragmentOutside(ctx context.Context, m Member) error {
	members, err := k.s.client.MemberList(ctx)
	if err != nil {
		return err
	}
	err = errors.New("it has no URL for clients")
	for _, other := range members.Members {
		if other.ID != m.ID {
			continue
		}
		for _, u := range other.ClientURLs {
			if _, err = k.s.client.Defragment(ctx, u); err == nil {
				return nil
			}
		}
	}
	return err
}
