package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"
)

// Etcd says which member of which of etcd's clusters a data directory is of: identifiers in hexadecimal.
type Etcd struct {
	Cluster string `json:"cluster"`
	Member  string `json:"member"`
}

// Damaged is returned where a file of the log of an embedded etcd does not begin as every such file does. Etcd itself
// panics then, or shortens the file to what it can read.
type Damaged struct {
	File string
	Why  string
}

func (d *Damaged) Error() string { return d.File + " is damaged: " + d.Why }

// logFiles are the files of the log in etcd's directory, the oldest first.
func logFiles(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	slices.Sort(names)
	return names, err
}

// Begun reports whether a directory has the log of an embedded etcd. Without one etcd would begin an empty store.
func Begun(dir string) bool {
	names, err := logFiles(dir)
	return err == nil && len(names) > 0
}

// Inspect reads from the heads of the log's files whose data a directory has. It changes nothing.
func Inspect(dir string) (of Etcd, err error) {
	names, err := logFiles(dir)
	if err != nil {
		return of, err
	}
	if len(names) == 0 {
		return of, fmt.Errorf("%s has no log of etcd", dir)
	}
	for _, name := range names {
		one, err := inspectFile(name)
		if err != nil {
			return of, err
		}
		if of != (Etcd{}) && one != of {
			return of, &Damaged{name, fmt.Sprintf("it is of member %s of etcd's cluster %s, and the files before it "+
				"are of member %s of cluster %s", one.Member, one.Cluster, of.Member, of.Cluster)}
		}
		of = one
	}
	return of, nil
}

// inspectFile reads the first two records of a file: a checksum, and what the log is of.
func inspectFile(name string) (of Etcd, err error) {
	f, err := os.Open(name)
	if err != nil {
		return of, err
	}
	defer f.Close()
	decoder := wal.NewDecoder(fileutil.NewFileReader(f))
	for _, want := range []int64{wal.CrcType, wal.MetadataType} {
		var r walpb.Record
		switch err := decoder.Decode(&r); {
		case errors.Is(err, io.EOF):
			return of, &Damaged{name, "it is empty"}
		case err != nil:
			return of, &Damaged{name, err.Error()}
		case r.GetType() != want:
			return of, &Damaged{name, fmt.Sprintf("it does not begin as a file of etcd's log (record of type %d)",
				r.GetType())}
		}
		if want == wal.CrcType {
			decoder.UpdateCRC(r.GetCrc())
			continue
		}
		var meta etcdserverpb.Metadata
		if err := proto.Unmarshal(r.GetData(), &meta); err != nil {
			return of, &Damaged{name, err.Error()}
		}
		of = Etcd{Cluster: hexID(meta.GetClusterID()), Member: hexID(meta.GetNodeID())}
	}
	return of, nil
}

func hexID(id uint64) string { return strconv.FormatUint(id, 16) }

// EtcdOf is the member of an embedded etcd that a store runs; nothing with an existing cluster.
func EtcdOf(s *Store) Etcd {
	if s.etcd == nil {
		return Etcd{}
	}
	return Etcd{Cluster: hexID(uint64(s.etcd.Server.Cluster().ID())), Member: hexID(uint64(s.etcd.Server.MemberID()))}
}
