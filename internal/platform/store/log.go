package store

import (
	"context"
	"log/slog"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdLog passes etcd's messages on to a slog logger. They come two levels quieter: what etcd calls an error is mostly
// an ordinary moment of a cluster (its first start, a peer that restarts), and what the store can't do it says itself.
type etcdLog struct {
	log *slog.Logger
	// closing makes all of it debug messages: etcd reports its own shutdown as errors.
	closing *atomic.Bool
	fields  []zapcore.Field
}

func newEtcdLog(log *slog.Logger, closing *atomic.Bool) *zap.Logger {
	return zap.New(&etcdLog{log: log.With("component", "etcd"), closing: closing})
}

func (e *etcdLog) level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.DPanicLevel:
		return slog.LevelError
	case l == zapcore.ErrorLevel && !e.closing.Load():
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// Enabled leaves out etcd's own debug messages: they are about single frames of its protocol.
func (e *etcdLog) Enabled(l zapcore.Level) bool {
	return l >= zapcore.InfoLevel && e.log.Enabled(context.Background(), e.level(l))
}

func (e *etcdLog) With(fields []zapcore.Field) zapcore.Core {
	all := append(append([]zapcore.Field{}, e.fields...), fields...)
	return &etcdLog{log: e.log, closing: e.closing, fields: all}
}

func (e *etcdLog) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Enabled(entry.Level) {
		return to.AddCore(entry, e)
	}
	return to
}

func (e *etcdLog) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range append(append([]zapcore.Field{}, e.fields...), fields...) {
		f.AddTo(values)
	}
	attrs := make([]slog.Attr, 0, len(values.Fields)+1)
	if entry.Level >= zapcore.PanicLevel {
		attrs = append(attrs, slog.String("effect", "etcd can't go on, and the controller ends: hosts go on by what "+
			"they have, and what was acknowledged is on disk; it can start again once the cause is gone"))
	}
	for k, v := range values.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	e.log.LogAttrs(context.Background(), e.level(entry.Level), entry.Message, attrs...)
	return nil
}

func (e *etcdLog) Sync() error { return nil }
