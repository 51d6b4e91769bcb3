package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/identity"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// A controller of the version before reads what is revoked from one list, and writes records of hosts without what it
// does not know of certificates that are withdrawn. While there is one, the list has all of that as well: it refuses
// whom this one refuses, and what it drops from a record stays known here.

const (
	// mostListed is how large the list may be, in bytes; etcd takes it in one piece.
	mostListed = 512 << 10
	// mostListedSerials is how large it may get by single certificates, of which hosts make some: the rest is kept for
	// hosts and controllers that an admin takes out.
	mostListedSerials = mostListed / 2
)

// oldList is the list as controllers of the version before read it.
type oldList struct {
	*revocations
	// roster says which controllers there are, cluster is whose names it has.
	roster  *peers.Roster
	cluster func() identity.ClusterID
}

func oldListOf(s *Server) oldList {
	return oldList{s.revoked, s.Roster, func() identity.ClusterID { return s.Authority.Trust().Cluster }}
}

// current reads the list.
func (l oldList) current() (store.Object, *pki.Revocations, error) {
	o, _ := l.store.Get(revocationsKey())
	list, err := pki.DecodeRevocations(o.Doc)
	return o, list, err
}

// revoking are the changes by which a name is revoked, in the list as well. It refuses where the list is full: a
// controller would go on to let the name in.
func (l oldList) revoking(n identity.Name, e pki.Revocation, clock bool) ([]store.Change, error) {
	changes, err := l.revocations.revoking(n, e, clock)
	if err != nil {
		return nil, err
	}
	old := slices.DeleteFunc(l.roster.Without(peers.KnowsRevoked), func(c peers.Controller) bool {
		return n.Kind == identity.Controller && n.ID == c.ID // it is the one that is taken out
	})
	if len(old) == 0 {
		return changes, nil
	}
	o, list, err := l.current()
	if err != nil {
		return nil, err
	}
	next := list.Pruned(e.At).With(map[string]pki.Revocation{n.String(): e}, nil, nil)
	change, size, err := changeOfList(o, next)
	if err == nil && size > mostListed {
		err = connect.NewError(connect.CodeResourceExhausted, fmt.Sprintf("nothing was revoked: controllers of an "+
			"earlier version read what is revoked from a list, which is full (%d KiB); upgrade %s first, or stop them",
			mostListed>>10, addressesOf(old)))
	}
	changes = slices.DeleteFunc(changes, func(c store.Change) bool { return c.Key == revocationsKey() })
	return append(changes, change), err
}

// confirming are the changes after which hosts and tokens count that nobody has confirmed yet, by the list as well;
// none for others.
func (l oldList) confirming(as ...string) (changes []store.Change, err error) {
	var names []string
	for _, name := range as {
		if confirmed := l.revocations.confirming(name); len(confirmed) > 0 {
			changes, names = append(changes, confirmed...), append(names, name)
		}
	}
	listed, err := l.allows(names)
	return append(changes, listed...), err
}

// allows is the change after which these names count again in the list; none where it does not have them.
func (l oldList) allows(as []string) ([]store.Change, error) {
	o, list, err := l.current()
	if err != nil || o.Version == 0 || len(list.Names) == 0 || len(as) == 0 {
		return nil, err
	}
	there := map[string]bool{}
	for _, h := range l.store.List(store.KindHost) {
		there[pki.RevokedAs(identity.Name{Kind: identity.Host, ID: h.ID})] = true
	}
	var again []string
	for _, name := range as {
		if !there[name] { // a controller of the version before has taken it out since
			continue
		}
		if n, ok := l.nameOf(name); ok {
			if _, has := list.Names[n]; has {
				again = append(again, n)
			}
		}
	}
	if len(again) == 0 {
		return nil, nil
	}
	change, _, err := changeOfList(o, list.With(nil, nil, again))
	return []store.Change{change}, err
}

// nameOf is the name in the list of what the store knows under RevokedAs.
func (l oldList) nameOf(as string) (string, bool) {
	kind, id, _ := strings.Cut(as, "/")
	for _, k := range []identity.Kind{identity.Host, identity.Controller} {
		if k.String() == kind {
			return identity.Name{Cluster: l.cluster(), Kind: k, ID: id}.String(), true
		}
	}
	return "", false
}

// follow keeps the list complete while a controller of the version before is in the cluster, until ctx ends.
func (l oldList) follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := false
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := l.complete(ctx)
		if err == nil {
			err = l.finishConfirming(ctx)
		}
		switch {
		case err == nil, rpcerrors.IsConflict(err): // another controller writes it as well
			said = false
		case !said && ctx.Err() == nil:
			said = true
			l.log.Warn("controllers of an earlier version may not know all that is revoked, or confirmed", "err", err)
		}
	}
}

// complete adds to the list what it lacks, as far as it has room.
func (l oldList) complete(ctx context.Context) error {
	old := l.roster.Without(peers.KnowsRevoked)
	if len(old) == 0 {
		return nil
	}
	o, list, err := l.current()
	if err != nil {
		return err
	}
	names := map[string]pki.Revocation{}
	for _, r := range l.store.List(revokedKind) {
		if n, ok := l.nameOf(r.Name); ok {
			names[n] = *l.in(&r)
		}
	}
	_, size, err := changeOfList(o, list.Pruned(l.now()))
	if err != nil {
		return err
	}
	names, size, full := fitting(names, list.Names, size, mostListed)
	serials, _, most := fitting(l.withdrawn(), list.Serials, size, mostListedSerials)
	next := list.Pruned(l.now()).With(names, serials, nil)
	change, _, err := changeOfList(o, next)
	if err != nil || string(change.Doc) == string(o.Doc) || len(next.Names)+len(next.Serials) == 0 {
		return err
	}
	if _, err := l.store.Write(ctx, []store.Change{change}); err != nil {
		return err
	}
	if full || most {
		return fmt.Errorf("the list that they read is full: upgrade %s", addressesOf(old))
	}
	return nil
}

// finishConfirming has the tokens count at controllers of the version before that were confirmed at one of them: it
// removed the mark, which is all that it knows, and refuses them by their records.
func (l oldList) finishConfirming(ctx context.Context) error {
	if len(l.roster.Without(peers.KnowsRevoked)) == 0 || len(l.halfConfirmed()) == 0 {
		return nil
	}
	if err := l.store.Sync(ctx); err != nil { // a mark may be on its way here
		return err
	}
	var changes []store.Change
	half := l.halfConfirmed()
	for _, one := range half[:min(len(half), mostConfirmed)] {
		changes = append(changes, tokens.Confirming(l.store, one.GetId())...)
	}
	if len(changes) == 0 {
		return nil
	}
	_, err := l.store.Write(ctx, changes)
	return err
}

// withdrawn are the certificates of hosts that are withdrawn, by their serials.
func (l oldList) withdrawn() map[string]pki.Revocation {
	all := map[string]pki.Revocation{}
	for _, o := range l.store.List(store.KindHost) {
		var doc hostDoc
		if json.Unmarshal(o.Doc, &doc) != nil || doc.Withdrawn == nil {
			continue
		}
		for _, c := range doc.Withdrawn.Certs {
			e := doc.Withdrawn.Revocation
			if e.Until = pki.UntilOf(c.Expires); !e.Over(l.now()) {
				all[c.Serial] = e
			}
		}
	}
	return all
}

// fitting are those entries that a list lacks and for which it has room, size is how large it gets by them; full says
// that some were left out.
func fitting(all, has map[string]pki.Revocation, size, most int) (some map[string]pki.Revocation, grown int,
	full bool) {
	some = map[string]pki.Revocation{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if _, there := has[key]; there {
			continue
		}
		text, err := json.Marshal(map[string]pki.Revocation{key: all[key]})
		if err != nil || size+len(text) > most {
			full = true
			continue
		}
		some[key], size = all[key], size+len(text)
	}
	return some, size, full
}

// changeOfList is the change that makes the list another one, and how large that is.
func changeOfList(o store.Object, next *pki.Revocations) (store.Change, int, error) {
	text, err := next.Encode()
	return store.Change{Key: revocationsKey(), Doc: text, IfVersion: o.Version, Vital: true}, len(text), err
}

// addressesOf are controllers as people know them, and where they are.
func addressesOf(list []peers.Controller) string {
	var names []string
	for _, c := range list {
		names = append(names, peers.NameOf(c)+" at "+c.Address)
	}
	return strings.Join(names, ", ")
}
