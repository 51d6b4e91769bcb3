package rpc

import (
	"context"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// wanted is the definition that a call asks for: that of a file, or an earlier one.
func (p people) wanted(ctx context.Context, q *controllerv1.ApplyDefinitionRequest) (*slice.Set, error) {
	if q.GetRestore() > 0 {
		if q.GetContent() != "" {
			return nil, connect.NewError(connect.CodeInvalidArgument, "either the content of a file is applied, or an "+
				"earlier revision is brought back")
		}
		set, _, err := historian(p).at(ctx, q.GetRestore())
		if err != nil {
			return nil, err
		}
		return set.Clone(), nil
	}
	def, err := p.parsed(q.GetFile(), q.GetContent())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	return inventory.Of(def)
}

// largeText is from how many bytes on only one definition is read at a time.
const largeText = 1 << 20

// parsed is a definition that somebody has sent.
func (p people) parsed(file, content string) (*spec.Definition, error) {
	if len(content) >= largeText {
		p.parsing.Lock()
		defer p.parsing.Unlock()
	}
	return spec.ParseDefinition(file, []byte(content))
}
