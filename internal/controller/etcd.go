package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// noPeers is ListenPeers of a controller that stays alone.
const noPeers = "none"

// waitingAfter is how long a start waits for the other controllers before it says so.
const waitingAfter = 5 * time.Second

// begin opens the store and the cluster's authority.
func begin(ctx context.Context, o Options) (*self, *store.Store, error) {
	s, err := selfOf(o)
	if err != nil {
		return nil, nil, err
	}
	doc, err := s.keptAuthority()
	if err != nil {
		return nil, nil, err
	}
	var opts store.Options
	if len(o.Outside.Endpoints) > 0 {
		opts, err = o.Outside.options()
		opts.Log = o.Log
	} else {
		opts, doc, err = s.embedded(ctx, o, doc)
	}
	if err != nil {
		return nil, nil, err
	}
	slow := time.AfterFunc(waitingAfter, func() {
		o.Log.Warn("waiting for etcd: a controller of several starts when the majority of them is there, and takes "+
			"its certificate, which they don't while its clock is more than a day ahead of theirs", "clock",
			time.Now().UTC().Format(time.RFC3339))
	})
	st, err := store.Open(ctx, opts)
	slow.Stop()
	if err != nil {
		return nil, nil, err
	}
	if err := s.adopt(ctx, st, doc, o.Name); err != nil {
		st.Close()
		return nil, nil, err
	}
	if len(o.Outside.Endpoints) > 0 {
		err = s.drop(joinFile)
	} else {
		err = s.keepStore(st)
	}
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	return s, st, nil
}

// alone are the options of a store that meets no others.
func (s *self) alone(o Options) store.Options {
	return store.Options{Dir: s.file(etcdDir), Name: s.ID, Log: o.Log, QuotaBytes: o.EtcdQuota}
}

// embedded are the options of this controller's own etcd, and the authority that its connections to the others need.
func (s *self) embedded(ctx context.Context, o Options, doc *pki.Document) (store.Options, *pki.Document, error) {
	opts := s.alone(o)
	if err := s.expectStore(); err != nil {
		return opts, nil, err
	}
	listen, advertise, err := o.peers()
	if err != nil || listen == "" {
		return opts, doc, err
	}
	if doc == nil {
		if doc, err = s.firstAuthority(ctx, o); err != nil {
			return opts, nil, err
		}
	}
	s.exports = true
	if err := s.open(doc); err != nil {
		return opts, nil, err
	}
	for _, root := range s.authority.Trust().Roots {
		s.etcdRoots = append(s.etcdRoots, identity.FingerprintOf(root))
	}
	s.Peer = advertise
	url := "https://" + advertise
	files := s.file(peerDir)
	opts.Peers = &store.Peers{Listen: []string{"https://" + listen}, Advertise: []string{url},
		Members: []string{s.ID + "=" + url}, ServerName: pki.ControllerDNS(doc.Cluster),
		Cert: filepath.Join(files, "cert.pem"), Key: filepath.Join(files, "key.pem"),
		CA: filepath.Join(files, "roots.pem")}
	if !s.begun() {
		return opts, doc, s.joining(ctx, o, opts.Peers)
	}
	return opts, doc, nil
}

// begun reports whether this controller's etcd has data.
func (s *self) begun() bool { return store.Begun(s.file(etcdDir)) }

// firstAuthority is the authority of a cluster that begins here, or of a data directory that lacks the copy.
func (s *self) firstAuthority(ctx context.Context, o Options) (*pki.Document, error) {
	if s.begun() {
		st, err := store.Open(ctx, s.alone(o))
		if err != nil {
			return nil, fmt.Errorf("%s is missing: %w", s.file(authorityFile), err)
		}
		err = s.adopt(ctx, st, nil, o.Name)
		st.Close()
		if err != nil {
			return nil, err
		}
		return s.keptAuthority()
	}
	doc, err := pki.New(o.Name, s.secret, time.Now())
	if err != nil {
		return nil, err
	}
	text, err := doc.Encode()
	if err != nil {
		return nil, err
	}
	if err := ownfile.Replace(s.file(foundingFile), nil); err != nil {
		return nil, err
	}
	return doc, s.keepAuthority(text)
}

// peers are where the other members reach this one's etcd, and where it listens; "" for nowhere.
func (o *Options) peers() (listen, advertise string, err error) {
	if o.ListenPeers == noPeers {
		return "", "", nil
	}
	if listen, err = after(o.ListenPeers, o.Listen); err != nil {
		return "", "", fmt.Errorf("--listen-peers: %w", err)
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", "", fmt.Errorf("--listen-peers: %w", err)
	}
	switch ip := net.ParseIP(host); {
	case host == "":
		host = everywhere()
	case host == "localhost":
		host = "127.0.0.1"
	case ip == nil:
		return "", "", fmt.Errorf("--listen-peers %s: give an IP address of this machine", listen)
	}
	listen = net.JoinHostPort(host, port)
	if advertise, err = after(o.AdvertisePeers, o.Advertise); err != nil {
		return "", "", fmt.Errorf("--advertise-peers: %w", err)
	}
	if o.AdvertisePeers == "" { // the port is the one that it listens on
		name, _, err := net.SplitHostPort(advertise)
		if err != nil {
			return "", "", err
		}
		advertise = net.JoinHostPort(name, port)
	}
	return listen, advertise, nil
}

// after is an address, or where it is not given, the one after another.
func after(given, other string) (string, error) {
	if given != "" {
		return given, nil
	}
	host, port, err := net.SplitHostPort(other)
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || n == 1<<16-1 {
		return "", fmt.Errorf("there is no port after %q: give HOST:PORT, or none", port)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n+1, 10)), nil
}

// everywhere is the address that stands for all of this machine's: that of IPv6 stands for both.
func everywhere() string {
	l, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		return "0.0.0.0"
	}
	_ = l.Close()
	return "::"
}

// settle makes this controller a full member of etcd: one with a vote, at the address that it has now.
func (s *self) settle(ctx context.Context, st *store.Store, log *slog.Logger) error {
	if s.Peer == "" {
		return nil
	}
	for first := true; ; {
		err := s.settleOnce(ctx, st, log)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if first && !errors.Is(err, store.ErrLearning) {
			first = false
			log.Warn("becoming a full member of etcd takes longer", "err", err)
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return nil
		}
	}
}

// settlePause is between two attempts.
const settlePause = 250 * time.Millisecond

func (s *self) settleOnce(ctx context.Context, st *store.Store, log *slog.Logger) error {
	status, err := st.Status(ctx)
	if err != nil {
		return err
	}
	for _, m := range status.Members {
		if !m.Self {
			continue
		}
		if url := "https://" + s.Peer; len(m.PeerURLs) != 1 || m.PeerURLs[0] != url {
			if err := st.SetPeerURLs(ctx, m.ID, []string{url}); err != nil {
				return err
			}
			log.Info("this controller has another address for the others", "was", m.PeerURLs, "is", url)
		}
		if m.Learner {
			if err := st.Promote(ctx, m.ID); err != nil {
				return err
			}
			log.Info("this controller has a vote now")
		}
	}
	return nil
}
