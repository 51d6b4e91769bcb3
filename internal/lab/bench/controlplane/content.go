package controlplane

import (
	"fmt"

	"heddle/internal/controller/inventory"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// check compares what each host has with what the definition says for its rack: an update that was lost on its way, or
// came after a newer one, would show here whatever the revision is that a host believes to have.
func (m *measurement) check() error {
	def, err := spec.ParseDefinition("fleet.yaml", []byte(m.def.text()))
	if err != nil {
		return err
	}
	objects, err := inventory.Of(def)
	if err != nil {
		return err
	}
	all, err := inventory.New(objects)
	if err != nil {
		return err
	}
	for _, h := range m.crowd.hosts {
		want, err := all.Slice(h.name(), map[string]string{"rack": rackName(h.number)})
		if err != nil {
			return err
		}
		if got := h.content(); got != want.Hash() {
			return fmt.Errorf("%s has content %s, and the definition says %s", h.name(), got, want.Hash())
		}
		m.checked++
	}
	return nil
}

// content is what the host has.
func (h *host) content() slice.Hash {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.active.Set().Hash()
}
