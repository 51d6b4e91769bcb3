package rpc

import (
	"context"

	"heddle/internal/controller/backup"
	"heddle/internal/controller/backup/service"
	"heddle/internal/controller/inventory"
)

// backupsOf is what answers people about backups at a server.
func backupsOf(s *Server) *service.Service {
	return service.New(service.Options{Store: s.Store, Log: s.Log, Authority: s.Authority, Roster: s.Roster,
		Epoch: s.Epoch, CatchUp: func(ctx context.Context) error { return s.everywhere().catchUp(ctx) },
		Fold: func(ctx context.Context) error { return s.definitions().Fold(ctx) }, Ports: portsOf(s),
		Hosts: func() (list []backup.Host) {
			s.fleet.mu.Lock()
			defer s.fleet.mu.Unlock()
			for _, h := range s.fleet.sorted() {
				list = append(list, backup.Host{Name: h.doc.Name, ID: h.id, Labels: h.doc.Labels})
			}
			return list
		},
		Addresses: func() map[string][]inventory.Granted {
			s.fleet.mu.Lock()
			defer s.fleet.mu.Unlock()
			return s.fleet.addresses.All()
		},
		Apply: people{s}.applied, Source: people{s}.sourceOf})
}

// Backup is what is defined, as "heddle backup export" writes it.
func (s Front) Backup(ctx context.Context) ([]byte, error) { return s.backups.Backup(ctx) }
