package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
)

// Backup is the configuration of a cluster in a file, and what it has.
type Backup struct {
	Content     string `json:"content"`
	Revision    int64  `json:"revision"`
	Switches    int    `json:"switches"`
	PortGroups  int    `json:"portGroups"`
	StaticPorts int    `json:"staticPorts"`
	Bindings    int    `json:"bindings"`
}

// BackupImport is a backup, and how it is brought in.
type BackupImport struct {
	File    string `json:"file"`
	Content string `json:"content"`
	DryRun  bool   `json:"dryRun"`
	// Identifiers is keep, new or "": keep where the cluster defines nothing yet.
	Identifiers string `json:"identifiers"`
	// Replace puts what the backup has in the place of what has its name.
	Replace bool `json:"replace"`
	// As is another name for the switch of a backup of one switch.
	As               string        `json:"as"`
	Force            bool          `json:"force"`
	AllowUnprotected bool          `json:"allowUnprotected"`
	Message          string        `json:"message"`
	Wait             time.Duration `json:"wait"`
}

// ImportedBackup is the result of an import, or of its dry run.
type ImportedBackup struct {
	Defined Defined `json:"defined"`
	// Identifiers is keep or new.
	Identifiers string `json:"identifiers"`
	// Collisions are what is there already, and is another; then nothing comes.
	Collisions []string `json:"collisions"`
	// StaticPorts come with their numbers, Bindings of them with their adapters, Addresses of pools with their hosts.
	StaticPorts int `json:"staticPorts"`
	Bindings    int `json:"bindings"`
	Addresses   int `json:"addresses"`
	// Notes are what is to be done besides, and what does not come.
	Notes []string `json:"notes"`
}

// BackupDiff is what is different now from a backup.
type BackupDiff struct {
	From    int64              `json:"from"`
	To      int64              `json:"to"`
	Objects []DefinedObject    `json:"objects"`
	Ports   []StaticPortChange `json:"ports"`
	// Notes are objects that have the name of one in the backup, and are others.
	Notes []string `json:"notes"`
}

// StaticPortChange is a static port that is another now.
type StaticPortChange struct {
	Port      string `json:"port"`
	PortGroup string `json:"portGroup"` // SWITCH/GROUP
	// Change is added, removed, bound, released or changed.
	Change string `json:"change"`
	// Old and New say whose it was and is; "" for nobody's.
	Old string `json:"old"`
	New string `json:"new"`
}

// backupCalls are those about backups.
type backupCalls struct {
	fleet *Fleet
	rpc   controllerv1connect.BackupServiceClient
}

// Backup makes a backup of everything, or of one switch.
func (b backupCalls) Backup(ctx context.Context, of string) (*Backup, error) {
	out, err := call[Backup, controllerv1.ExportBackupRequest, controllerv1.ExportBackupResponse](ctx, b.fleet,
		b.rpc.ExportBackup, struct {
			Switch string `json:"switch"`
		}{of})
	return &out, err
}

// ImportBackup brings a backup in, all of it or nothing.
func (b backupCalls) ImportBackup(ctx context.Context, q BackupImport) (*ImportedBackup, error) {
	out, err := call[ImportedBackup, controllerv1.ImportBackupRequest, controllerv1.ImportBackupResponse](ctx, b.fleet,
		b.rpc.ImportBackup, q)
	return &out, err
}

// CompareBackup says what is different now from a backup.
func (b backupCalls) CompareBackup(ctx context.Context, file, content string) (*BackupDiff, error) {
	out, err := call[BackupDiff, controllerv1.CompareBackupRequest, controllerv1.CompareBackupResponse](ctx, b.fleet,
		b.rpc.CompareBackup, struct {
			File    string `json:"file"`
			Content string `json:"content"`
		}{file, content})
	return &out, err
}
