package members

import (
	"bufio"
	"context"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/platform/rpcerrors"
)

// partSize is how much of a snapshot is sent at a time, in bytes.
const partSize = 1 << 20

// TakeSnapshot sends the whole database.
func (s Service) TakeSnapshot(ctx context.Context, _ *controllerv1.TakeSnapshotRequest,
	stream controllerv1connect.MemberServiceTakeSnapshotServerStream) error {
	st, err := s.Etcd.Status(ctx)
	if err != nil {
		return rpcerrors.OfStore(err)
	}
	if !st.Embedded {
		return connect.NewError(connect.CodeFailedPrecondition, "an existing etcd cluster is saved by its own tools "+
			"(etcdctl snapshot save)")
	}
	to := bufio.NewWriterSize(parts{stream}, partSize)
	size, err := s.Etcd.Snapshot(ctx, to)
	if err == nil {
		err = to.Flush()
	}
	if err != nil {
		return rpcerrors.OfStore(err)
	}
	s.Log.Info("a snapshot was taken", "bytes", size)
	return nil
}

// parts sends what is written.
type parts struct {
	stream controllerv1connect.MemberServiceTakeSnapshotServerStream
}

func (p parts) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), partSize)
		if err := p.stream.Send(&controllerv1.TakeSnapshotResponse{Part: rest[:n]}); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(b), nil
}
