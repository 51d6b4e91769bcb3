package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// alone is the peer URL of a member without peers. Nothing listens there; it is changed when the first peer joins.
const alone = "unix://alone"

// configure makes etcd's configuration. No client connects from outside of the process, so nothing listens for any.
func (s *Store) configure() (*embed.Config, error) {
	o := s.opts
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir = o.Name, o.Dir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newEtcdLog(o.Log, s.closing))
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
	cfg.EnableGRPCGateway = false
	cfg.QuotaBackendBytes = o.QuotaBytes
	cfg.MaxTxnOps = MaxChanges
	cfg.PreVote = true
	cfg.ForceNewCluster = o.ForceNewCluster
	cfg.InitialClusterToken = "heddle"
	if o.Fast {
		cfg.UnsafeNoFsync = true
		if cfg.TickMs, cfg.ElectionMs = 10, 100; o.Peers != nil {
			cfg.TickMs, cfg.ElectionMs = 50, 500 // a busy machine would elect leaders all the time
		}
	}
	if o.Peers == nil {
		u, err := url.Parse(alone)
		if err != nil {
			return nil, err
		}
		cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = nil, []url.URL{*u}
		cfg.InitialCluster = o.Name + "=" + alone
		return cfg, nil
	}
	return cfg, configurePeers(cfg, o.Peers)
}

func configurePeers(cfg *embed.Config, c *Peers) (err error) {
	advertise := c.Advertise
	if len(advertise) == 0 {
		advertise = c.Listen
	}
	if cfg.ListenPeerUrls, err = parseURLs(c.Listen); err != nil {
		return err
	}
	if cfg.AdvertisePeerUrls, err = parseURLs(advertise); err != nil {
		return err
	}
	cfg.InitialCluster = strings.Join(c.Members, ",")
	if c.Existing {
		cfg.ClusterState = embed.ClusterStateFlagExisting
	}
	// Members are known by the cluster's name in their certificates, so that an address can change.
	cfg.PeerTLSInfo = transport.TLSInfo{CertFile: c.Cert, KeyFile: c.Key, TrustedCAFile: c.CA, ClientCertAuth: true,
		ServerName: c.ServerName, SkipClientSANVerify: true, AllowedHostnames: []string{c.ServerName}}
	return nil
}

func parseURLs(texts []string) (urls []url.URL, err error) {
	for _, t := range texts {
		u, err := url.Parse(t)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		urls = append(urls, *u)
	}
	return urls, nil
}

// startEmbedded starts etcd in this process and waits until it is part of its cluster.
func (s *Store) startEmbedded(ctx context.Context) error {
	if err := os.MkdirAll(s.opts.Dir, 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	cfg, err := s.configure()
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("store: etcd in %s: %w", s.opts.Dir, err)
	}
	s.etcd = e
	select {
	case <-e.Server.ReadyNotify():
	case <-e.Server.StopNotify():
		return fmt.Errorf("store: etcd in %s stopped while it started", s.opts.Dir)
	case err := <-e.Err():
		return fmt.Errorf("store: etcd in %s: %w", s.opts.Dir, err)
	case <-ctx.Done():
		return fmt.Errorf("store: etcd in %s has no quorum yet: %w", s.opts.Dir, ctx.Err())
	}
	s.client, s.Limits.db = v3client.New(e.Server), func() database { return e.Server.Backend() }
	return nil
}

// died returns what is closed when the embedded etcd ends by itself.
func (s *Store) died() <-chan struct{} {
	if s.etcd == nil {
		return nil
	}
	return s.etcd.Server.StopNotify()
}

var errStopped = errors.New("the embedded etcd has stopped")
