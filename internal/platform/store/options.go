package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// What a store has when its options don't say.
const (
	DefaultPrefix = "/heddle/"
	DefaultName   = "controller"
	// DefaultQuota is how large etcd's database may grow before it refuses writes.
	DefaultQuota = 8 << 30
	// LeastQuota and MostQuota bound it. What is in the database is in the controller's memory too.
	LeastQuota, MostQuota = 16 << 20, 64 << 30
	// DefaultCollect is how long the first write of a transaction waits for others.
	DefaultCollect = 5 * time.Millisecond
	// DefaultTimeout is how long a write takes at most before it fails.
	DefaultTimeout = 5 * time.Second
)

// Options say where the store is.
type Options struct {
	// Dir holds the embedded etcd's data. It is used when Endpoints is empty.
	Dir string
	// Endpoints are those of an existing etcd cluster: https://HOST:PORT.
	Endpoints []string
	// TLS, Username and Password are for an existing cluster.
	TLS                *tls.Config
	Username, Password string
	// Prefix is before every key, so that several Heddle clusters can share one etcd cluster.
	Prefix string
	// Log receives what the store and etcd report; etcd's own messages come at quieter levels.
	Log *slog.Logger
	// QuotaBytes is the embedded etcd's quota; of an existing cluster the quota that status compares with, 0 = unknown.
	QuotaBytes int64
	// Collect is how long the first write of a transaction waits for others.
	Collect time.Duration
	// Timeout is how long a write waits for its turn at most, also when its context allows longer, and then for etcd.
	Timeout time.Duration
	// Fast is for tests: it writes without fsync, with short ticks, and collects no writes.
	Fast bool

	// Name is this member's name in the embedded cluster.
	Name string
	// Peers is set when the embedded etcd has any.
	Peers *Peers
	// ForceNewCluster makes this member the only one of a new cluster that holds the old one's data: for when the
	// others are lost for good. The epoch rises.
	ForceNewCluster bool
	// Maintain says how the database is kept small.
	Maintain Maintain
}

// Peers says how an embedded member meets the others.
type Peers struct {
	// Listen and Advertise are URLs: https://ADDRESS:PORT. Advertise defaults to Listen.
	Listen, Advertise []string
	// Members are all members of a new cluster, or those of the one that is joined, with this one: NAME=URL.
	Members []string
	// Existing is set when this member joins a cluster that runs.
	Existing bool
	// Cert, Key and CA are the files of the mutual TLS between members. Every member's certificate carries the
	// name ServerName; members are verified by it, never by an address.
	Cert, Key, CA, ServerName string
}

// withDefaults returns the options with what they leave open.
func (o Options) withDefaults() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if !strings.HasSuffix(o.Prefix, "/") {
		o.Prefix += "/"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.QuotaBytes == 0 && len(o.Endpoints) == 0 {
		o.QuotaBytes = DefaultQuota
	}
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Collect == 0 && !o.Fast {
		o.Collect = DefaultCollect
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Maintain.DefragAbove == 0 && o.QuotaBytes > 0 {
		o.Maintain.DefragAbove = min(defragAbove, o.QuotaBytes/8)
	}
	o.Maintain = o.Maintain.withDefaults(o.Fast)
	return o, o.check()
}

func (o Options) check() error {
	switch {
	case o.Dir == "" && len(o.Endpoints) == 0:
		return errors.New("store: neither a data directory nor etcd endpoints are given")
	case o.Dir != "" && len(o.Endpoints) > 0:
		return errors.New("store: both a data directory and etcd endpoints are given: choose one")
	case o.Peers != nil && len(o.Endpoints) > 0:
		return errors.New("store: an existing etcd cluster has members of its own: give no peers")
	case strings.ContainsAny(o.Name, "=,"):
		return fmt.Errorf("store: the member name %q contains = or ,", o.Name)
	}
	for _, e := range o.Endpoints {
		if o.Password != "" && !strings.HasPrefix(e, "https://") {
			return fmt.Errorf("store: a password would go in plain text to %s: use https://", e)
		}
	}
	if o.Peers != nil {
		return o.Peers.check()
	}
	return nil
}

func (c *Peers) check() error {
	if len(c.Listen) == 0 || len(c.Members) == 0 {
		return errors.New("store: a clustered member needs a URL to listen on and the list of members")
	}
	for _, u := range append(append([]string{}, c.Listen...), c.Advertise...) {
		if !strings.HasPrefix(u, "https://") {
			return fmt.Errorf("store: peers talk TLS only: %s has to begin with https://", u)
		}
	}
	if c.Cert == "" || c.Key == "" || c.CA == "" || c.ServerName == "" {
		return errors.New("store: peers need a certificate, its key, the authority's certificate and a name")
	}
	return nil
}
