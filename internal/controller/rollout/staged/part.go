package staged

import (
	"context"

	"heddle/internal/controller/pipeline"
	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
)

// Parts are the parts of a change that may be made in stages: Ends finds what ends by it, Change has hosts make it in
// stages, Closed writes what ends.
func Parts(with Controller) (*Ends, *Change, Closed) {
	ends := &Ends{with: with}
	return ends, &Change{with: with, ends: ends}, Closed{ends}
}

// Change has hosts make a change in stages, where it is asked for so.
type Change struct {
	with   Controller
	ends   *Ends
	stages *inStages // nil for a change that all hosts get at once
}

// Parse implements pipeline.Parser.
func (s *Change) Parse(_ context.Context, p *pipeline.Plan) (err error) {
	s.stages, err = stagesOf(p.ApplyDefinitionRequest)
	return err
}

// Weigh implements pipeline.Weigher.
func (s *Change) Weigh(ctx context.Context, p *pipeline.Plan) error {
	if s.stages == nil {
		return nil
	}
	list, before := s.ends.Found()
	s.stages.prepare(ctx, s.with, p, before, list)
	if err := s.stages.refusal(ctx, s.with); err != nil && !p.Change.Empty() {
		return err
	}
	return nil
}

// Foretell implements pipeline.Foreteller.
func (s *Change) Foretell(_ context.Context, p *pipeline.Plan) error {
	p.Answer.Rollout = s.stages.foreseen()
	return nil
}

// Satisfied implements pipeline.Satisfied: the answer names the rollout that makes the change already.
func (s *Change) Satisfied(ctx context.Context, p *pipeline.Plan) error {
	p.Answer.Rollout = s.with.Making(ctx)
	return nil
}

// Prepare implements pipeline.Preparer.
func (s *Change) Prepare(ctx context.Context, p *pipeline.Plan) error {
	if s.stages == nil {
		return nil
	}
	p.Way = s.stages.how()
	return s.stages.writeParts(ctx, s.with.Record)
}

// Changes implements pipeline.Contributor.
func (s *Change) Changes(p *pipeline.Plan) ([]store.Change, error) {
	if s.stages == nil {
		return nil, nil
	}
	return s.stages.begins(p.Base)
}

// Tell implements pipeline.Teller.
func (s *Change) Tell(ctx context.Context, p *pipeline.Plan) {
	if s.stages == nil {
		return
	}
	revision := p.Answer.GetRevision()
	s.stages.began(ctx, s.with, revision)
	p.Answer.Rollout = s.stages.foreseen()
	p.Answer.Rollout.Id, p.Answer.Rollout.Revision = s.stages.ID, revision
	access.Note(ctx, "rollout "+s.stages.ID)
}
