package rpc

import (
	"context"
	"fmt"
	"sync"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/pipeline"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// sourceOf is where the definition comes from that a call asks for: a file, or an earlier revision.
func (p people) sourceOf(q *controllerv1.ApplyDefinitionRequest) pipeline.Source {
	if q.GetRestore() > 0 {
		return &pastSource{at: p.reader().At, q: q}
	}
	return &fileSource{parsing: p.parsing, q: q}
}

// fileSource is a definition that a file says.
type fileSource struct {
	parsing *sync.Mutex
	q       *controllerv1.ApplyDefinitionRequest
	next    *slice.Set
}

// Parse implements pipeline.Source.
func (s *fileSource) Parse(context.Context) error {
	def, err := parsedText(s.parsing, s.q.GetFile(), s.q.GetContent())
	if err != nil {
		return connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	s.next, err = inventory.Of(def)
	return err
}

// Wanted implements pipeline.Source.
func (s *fileSource) Wanted(have *slice.Set) (pipeline.Wanted, error) {
	return pipeline.Wanted{Kept: definition.KeepUnknown(have, s.next), Next: s.next}, nil
}

// pastSource is the definition of an earlier revision.
type pastSource struct {
	at   func(ctx context.Context, revision int64) (*slice.Set, int64, error)
	q    *controllerv1.ApplyDefinitionRequest
	next *slice.Set
}

// Parse implements pipeline.Source.
func (s *pastSource) Parse(ctx context.Context) error {
	if s.q.GetContent() != "" {
		return connect.NewError(connect.CodeInvalidArgument, "either the content of a file is applied, or an "+
			"earlier revision is brought back")
	}
	set, _, err := s.at(ctx, s.q.GetRestore())
	if err == nil {
		s.next = set.Clone()
	}
	return err
}

// Wanted implements pipeline.Source.
func (s *pastSource) Wanted(*slice.Set) (pipeline.Wanted, error) {
	return pipeline.Wanted{Next: s.next}, nil
}

// madeOn refuses a change that somebody made on another revision; nil for one made on any.
func madeOn(revision int64) func(int64) error {
	if revision <= 0 {
		return nil
	}
	return func(now int64) error {
		if revision == now {
			return nil
		}
		return connect.NewError(connect.CodeAborted, fmt.Sprintf("the definition has changed since: the change was "+
			"made on revision %d, it is at %d now; read it again (heddle definition show)", revision, now))
	}
}

// largeText is from how many bytes on only one definition is read at a time.
const largeText = 1 << 20

// parsedText is a definition that somebody has sent.
func parsedText(one *sync.Mutex, file, content string) (*spec.Definition, error) {
	if len(content) >= largeText {
		one.Lock()
		defer one.Unlock()
	}
	return spec.ParseDefinition(file, []byte(content))
}
