package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/spec"
)

// Host is what the history needs of its host.
type Host struct {
	active.Reader
	// Do runs a function in the loop.
	Do func(context.Context, func() error) error
	// Applied is the configuration that was applied last; it is called in the loop.
	Applied func() state.Source
	Stored  state.History
}

// History reads the applied configuration and those applied before it. Files are read beside the loop.
type History struct{ host Host }

// New returns the history of a host.
func New(h Host) *History { return &History{h} }

// Config returns the applied configuration, that configuration with the changes made by commands, or a version of the
// history.
func (h *History) Config(ctx context.Context, q api.ConfigQuery) (*api.AppliedConfig, error) {
	if q.Number < 0 || q.Number > 0 && q.Running {
		return nil, api.NewError(api.Invalid, "name one version of the configuration, counted from 1, or the running "+
			"one")
	}
	list, err := h.Configs(ctx)
	if err != nil {
		return nil, err
	}
	if q.Number == 0 {
		return h.applied(ctx, list, q.Running)
	}
	i := slices.IndexFunc(list, func(c api.AppliedConfig) bool { return c.Number == q.Number })
	if i < 0 {
		return nil, api.NewError(api.NotFound, noVersion(q.Number, list))
	}
	_, text, err := h.host.Stored.Get(q.Number)
	if errors.Is(err, state.ErrNoVersion) { // it was the oldest, and has been removed from the history since
		return nil, api.NewError(api.NotFound, noVersion(q.Number, list))
	}
	if err != nil {
		return nil, err
	}
	list[i].Content = string(text)
	return &list[i], nil
}

// applied returns the configuration that is applied now; running adds the changes made by commands.
func (h *History) applied(ctx context.Context, list []api.AppliedConfig, running bool) (out *api.AppliedConfig,
	err error) {
	var source state.Source
	var merged *spec.Config
	err = h.host.Do(ctx, func() error {
		source, merged = h.host.Applied(), h.host.Active().Config
		return nil
	})
	if err != nil {
		return nil, err
	}
	out = &api.AppliedConfig{Applied: !running, By: source.By, File: source.File, Content: source.Content}
	if i := slices.IndexFunc(list, func(c api.AppliedConfig) bool { return c.Applied }); i >= 0 && !running {
		out.Number, out.At = list[i].Number, list[i].At
	}
	if running {
		text, err := spec.Format(merged)
		if err != nil {
			return nil, err
		}
		out.Content = string(text)
	}
	out.Size = len(out.Content)
	return out, nil
}

// Configs lists the configurations in the history. The applied one is the newest version with the active content: if
// the history could not be written, that is an earlier one or none.
func (h *History) Configs(ctx context.Context) ([]api.AppliedConfig, error) {
	var counts string
	if err := h.host.Do(ctx, func() error { counts = h.host.Applied().Content; return nil }); err != nil {
		return nil, err
	}
	list, err := h.host.Stored.List()
	if err != nil {
		return nil, err
	}
	out := make([]api.AppliedConfig, len(list))
	for i, v := range list {
		out[i] = api.AppliedConfig{Number: v.Number, At: v.At, By: v.By, File: v.File, Size: v.Bytes,
			Restores: v.Restores}
	}
	for i, v := range slices.Backward(list) {
		if v.Holds(counts) {
			out[i].Applied = true
			break
		}
	}
	return out, nil
}

func noVersion(number int, list []api.AppliedConfig) string {
	if len(list) == 0 {
		return fmt.Sprintf("there is no version %d of the configuration: nothing was applied yet", number)
	}
	return fmt.Sprintf("there is no version %d of the configuration: the history has %d to %d", number, list[0].Number,
		list[len(list)-1].Number)
}
