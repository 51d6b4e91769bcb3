package rpc

import (
	"encoding/json"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// joinPlace is the place that a host takes when it joins.
type joinPlace struct {
	// was is the host that has the name, had what the store keeps of it; there is none where taken is not set.
	was   store.Object
	had   hostDoc
	taken bool
	// again: the host has joined by the same token, and the answer did not reach it.
	again bool
}

// placeOf finds the place for a host of that name. The token allows the name, and says whether it is to be taken from
// another host.
func placeOf(st Store, name string, token *pki.JoinRecord, again bool) (*joinPlace, error) {
	p := &joinPlace{again: again}
	p.was, p.taken = st.Get(store.Key{Kind: store.KindHost, Name: name})
	if p.taken {
		if err := json.Unmarshal(p.was.Doc, &p.had); err != nil {
			return nil, fmt.Errorf("host %s in the store cannot be read: %w", name, err)
		}
	}
	if again && (!p.taken || token.Used.Host != name || !token.Used.At.Equal(p.had.Joined)) {
		err := &identity.TokenError{Fault: identity.Used, ID: token.ID, Err: fmt.Errorf("host %s joined with it on %s",
			token.Used.Host, token.Used.At.UTC().Format(time.DateTime))}
		return nil, connect.NewError(connect.CodeUnauthenticated, err.Error())
	}
	if !again {
		return p, p.allowed(name, token)
	}
	return p, nil
}

// allowed returns an error unless the token is for the place. Who has a token for a host of a new name is not told
// which names there are.
func (p *joinPlace) allowed(name string, token *pki.JoinRecord) error {
	switch {
	case p.taken && token.Replaces == "":
		return connect.NewError(connect.CodePermissionDenied, fmt.Sprintf("this token lets no host join by the name "+
			"%s: take another name (--name); a host that was installed anew takes its old place with a token that an "+
			"admin makes for that (heddle host token --replace %s)", name, name))
	case token.ReplacesID != "" && token.ReplacesID != p.was.ID:
		return connect.NewError(connect.CodePermissionDenied, fmt.Sprintf("the host %s whose place the token takes "+
			"was taken out of the cluster since: an admin makes another token (heddle host token)", name))
	}
	return nil
}

// take is the change that makes a host the one in the place, and the certificate that it gets. Whoever takes a host's
// place has its id, and the certificates of the host before count no more.
func (p *joinPlace) take(a *pki.Authority, q *controllerv1.JoinHostRequest, token *pki.JoinRecord, now time.Time) (
	host store.Change, doc hostDoc, issued *pki.Issued, err error) {
	host = store.Change{Key: store.Key{Kind: store.KindHost, Name: q.GetName()}, IfVersion: store.New,
		ID: store.NewID()}
	if p.taken {
		host.IfVersion, host.ID = p.was.Version, p.was.ID
	}
	if p.again {
		if err := p.had.mayRenew(a, now); err != nil {
			return host, doc, nil, err
		}
	}
	issued, err = a.IssueHost(q.GetCsr(), pki.Subject{ID: host.ID, Display: q.GetName()}, now)
	if err != nil {
		return host, doc, nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	if p.again {
		doc = p.had.next(issued, now)
	} else {
		doc = hostDoc{Name: q.GetName(), Labels: labelsOf(token.Labels), Joined: token.Used.At,
			Withdrawn: p.had.Withdrawn}
		if p.taken {
			doc.withdraw(p.had.certificates(), pki.Revocation{At: now, By: "the controller",
				Why: "host " + q.GetName() + " joined anew"})
		}
		doc.has(issued)
	}
	host.Doc, err = json.Marshal(doc)
	return host, doc, issued, err
}

// placeHad is the id of a host whose place another one is to take, and its labels.
func (p people) placeHad(name string) (string, pki.LabelBounds, error) {
	o, ok := p.Store.Get(store.Key{Kind: store.KindHost, Name: name})
	if !ok {
		return "", nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("the cluster has no host %q whose place "+
			"could be taken: see heddle host list", name))
	}
	var doc hostDoc
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		return "", nil, fmt.Errorf("host %s in the store cannot be read: %w", name, err)
	}
	labels := pki.LabelBounds{}
	for k, v := range doc.Labels {
		labels[k] = []string{v}
	}
	return o.ID, labels, nil
}
