package rpc

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	optionsv1 "heddle/api/heddle/options/v1"
	"heddle/internal/api"
	"heddle/internal/api/wire"
	"heddle/internal/identity"
	"heddle/internal/platform/health"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/snapshots"
	"heddle/internal/platform/store"
)

// Self is the controller that a server is part of.
type Self struct {
	Started time.Time
	// Dir is its directory.
	Dir string
	// Store says how etcd is.
	Store func(context.Context) (store.Status, error)
	// Etcd is the member of etcd that it runs, and StoreID what its store was called when the cluster began.
	Etcd    store.Etcd
	StoreID string
	// EtcdRoots are the roots that its etcd trusts since it started; nil where it has no other members to know.
	EtcdRoots []identity.Fingerprint
	// Snapshots are those by schedule; it returns nil for no schedule.
	Snapshots func() *snapshots.State
	// Writes says why nothing can be written in Dir, nil where something can; the func is nil where nobody knows.
	Writes func() error
}

// GetControllerStatus says how this controller is, and what it sees of the cluster.
func (p people) GetControllerStatus(ctx context.Context, _ *controllerv1.GetControllerStatusRequest) (
	*controllerv1.GetControllerStatusResponse, error) {
	s := Front(p).Status(ctx)
	out := &controllerv1.GetControllerStatusResponse{}
	codec := wire.Codec{Lenient: true}
	return out, codec.Put(s, out)
}

// snapshots are those by schedule; nil for none.
func (s Front) snapshots() *api.SnapshotState {
	if s.Self.Snapshots == nil {
		return nil
	}
	st := s.Self.Snapshots()
	if st == nil {
		return nil
	}
	return &api.SnapshotState{Dir: st.Dir, Every: st.Every, Last: st.Last, Count: st.Count, Size: st.Size,
		Failures: st.Failures, Problem: st.Problem}
}

// Status is how this controller is.
func (s Front) Status(ctx context.Context) *api.ControllerStatus {
	now, trust := s.TLS.Now(), s.Authority.Trust()
	out := &api.ControllerStatus{Cluster: string(trust.Cluster), Name: s.Authority.Get().Document.Name,
		Controller: s.This.ID, Version: s.This.Version, Started: s.Self.Started, Now: now,
		Controllers: s.places(ctx), Store: s.storeStatus(ctx), RootStage: string(s.Authority.Get().Document.Stage),
		RootEnds: trust.Roots[0].NotAfter, Clock: clockState()}
	out.DiskFree, out.DiskSize = disk(s.Self.Dir)
	out.Snapshots = s.snapshots()
	if own, err := s.TLS.Own(); err == nil {
		out.CertificateEnds = own.Certificate.Leaf.NotAfter
	}
	var problems []health.HostProblem
	out.Hosts, problems = s.summary(ctx, out)
	for _, w := range pki.Warnings(s.ends(), now) {
		out.Expiring = append(out.Expiring, api.ExpiryWarning{Subject: w.Subject, ID: w.ID, Name: w.Name, Ends: w.Ends,
			Level: api.ExpiryLevel(w.Level.String()), Text: w.Text})
	}
	provider := s.SignIn.State()
	out.Findings = slices.Concat(health.Examine(out, problems), s.Skews(), s.issuing.Skews(s.issuing.HeardAhead()),
		health.SignIn(provider.Issuer, provider.Fault, provider.Since), openRollouts{s.fleet}.waiting(s.sight),
		s.physical(), health.Writable(s.Self.Dir, s.Self.Writes),
		health.Endpoints(sharedEndpoints(s.segments.Twice())),
		health.NotConfirmed(s.revoked.unconfirmed()), s.otherControllers(ctx))
	out.Healthy = health.Healthy(out.Findings)
	return out
}

// places are where the controllers answer.
func (s Front) places(ctx context.Context) (list []api.ControllerPlace) {
	on := s.carried(ctx)
	for _, c := range s.Cluster() {
		at := api.ControllerPlace{ID: c.ID, Address: c.Address, Self: c.ID == s.This.ID, Name: peers.NameOf(c),
			Host: on[c.ID]}
		if c.API != "" {
			at.URL = "https://" + c.API
		}
		list = append(list, at)
	}
	return list
}

// summary counts the hosts by their states in the whole cluster, and names those that do not have the definition
// active. The majority of the controllers confirms it, or the store is called stale.
func (s Front) summary(ctx context.Context, out *api.ControllerStatus) (by map[string]int,
	problems []health.HostProblem) {
	by, out.Epoch = map[string]int{}, s.Epoch
	list, err := people(s).ListHosts(ctx, &controllerv1.ListHostsRequest{})
	if err != nil {
		return by, nil
	}
	out.Revision = list.GetRevision()
	if list.GetStale() != "" && out.Store.Stale == "" { // the store has not noticed yet
		out.Store.Stale = "a majority of the controllers has not answered"
	}
	for _, h := range list.GetHosts() {
		word, why := stateWord(h.GetState()), ""
		by[word]++
		if len(h.GetProblems()) > 0 {
			why = h.GetProblems()[0]
		}
		switch h.GetState() {
		case controllerv1.HostState_HOST_STATE_UP, controllerv1.HostState_HOST_STATE_PENDING:
		default:
			problems = append(problems, health.HostProblem{Name: h.GetName(), State: word, Why: why})
		}
	}
	return by, problems
}

// stateWord is a state's word in the contract.
func stateWord(state controllerv1.HostState) string {
	value := state.Descriptor().Values().ByNumber(state.Number())
	if value == nil {
		return ""
	}
	word, _ := proto.GetExtension(value.Options(), optionsv1.E_Text).(string)
	return word
}

// ends are all things that end: roots, this controller's certificate, those of hosts, tokens.
func (s Front) ends() []pki.Expiring {
	list := s.Authority.ExpiringRoots()
	if own, err := s.TLS.Own(); err == nil {
		if e, err := pki.ExpiringCertificate(own.Certificate.Leaf); err == nil {
			list = append(list, e)
		}
	}
	list = append(list, certificatesEnd(s.fleet)...)
	for _, r := range s.tokens.All() {
		list = append(list, r.Expiring())
	}
	for _, o := range s.Store.List(store.KindToken) {
		if r, err := pki.DecodeJoinRecord(o.Doc); err == nil {
			if e, ok := r.Expiring(); ok {
				list = append(list, e)
			}
		}
	}
	return list
}

// certificatesEnd are the certificates of hosts: as the fleet has read them, which ten thousand need not be again.
func certificatesEnd(f *fleet) (list []pki.Expiring) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if !h.doc.Expires.IsZero() {
			list = append(list, pki.Expiring{Subject: pki.HostSubject, ID: h.id, Name: h.doc.Name,
				Made: h.doc.Expires.Add(-pki.CertificateLife), Ends: h.doc.Expires})
		}
	}
	return list
}

// storeTime bounds how long etcd may take to say how it is.
const storeTime = 5 * time.Second

func (s Front) storeStatus(ctx context.Context) (out api.StoreStatus) {
	if s.Self.Store == nil {
		out.Error = "this controller does not know"
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	st, err := s.Self.Store(ctx)
	out = api.StoreStatus{Embedded: st.Embedded, Stale: st.Stale, Revision: st.Revision, Quota: st.Quota}
	if err != nil {
		out.Error = err.Error()
	}
	for _, m := range st.Members {
		one := api.StoreMember{Name: m.Name, Leader: m.Leader, Learner: m.Learner, Self: m.Self, Error: m.Error}
		if m.Health != nil {
			one.Answered, one.Lag = true, int64(m.Health.Lag)
			one.Size, one.InUse = m.Health.Size, m.Health.InUse
			if len(m.Health.Errors) > 0 {
				one.Error = cmp.Or(one.Error, m.Health.Errors[0])
			}
			out.Size, out.InUse = max(out.Size, one.Size), max(out.InUse, one.InUse)
		}
		out.Members = append(out.Members, one)
	}
	out.Full = st.Embedded && store.Full(out.Size, out.Quota)
	for _, a := range st.Alarms {
		out.Alarms = append(out.Alarms, a.Kind)
	}
	return out
}

// disk is the space of the file system with a directory; 0 where it is not known.
func disk(dir string) (free, size int64) {
	if dir == "" {
		return 0, 0
	}
	free, size, _ = snapshots.RoomOf(dir)
	return free, size
}

// synchronisedFile is made by systemd-timesyncd once it has the time.
const synchronisedFile = "/run/systemd/timesync/synchronized"

// clockState says whether the clock follows others. The kernel's word is not for services that may not set the clock.
func clockState() api.ClockState {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err == nil && state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0 {
		return api.ClockSynchronised
	}
	_, fileErr := os.Stat(synchronisedFile)
	switch {
	case fileErr == nil:
		return api.ClockSynchronised
	case err == nil && errors.Is(fileErr, fs.ErrNotExist):
		return api.ClockFree
	}
	return api.ClockUnknown
}
