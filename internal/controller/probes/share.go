package probes

import (
	"slices"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
	"heddle/internal/fabric/wire"
)

// next is the next message to a host, nil for none: what is another than what it was sent.
func (h *Hub) next(f *follower) *controllerv1.FollowProbesResponse {
	h.mu.Lock()
	layout, verdict := h.layout, h.verdict
	h.mu.Unlock()
	m := &controllerv1.FollowProbesResponse{}
	keys := &controllerv1.FollowProbesResponse{Keys: wire.Keys(fabric.Secrets(h.Secret, h.Now()))}
	if another(&f.keys, keys) {
		m.Keys = keys.GetKeys()
	}
	if tasks := wire.Tasks(layout.Tasks(f.host.ID)); another(&f.tasks, tasks) {
		m.Tasks = tasks
	}
	if found := (&controllerv1.ProbeFindings{Findings: wire.Findings(concerning(verdict, f.host.ID))}); another(
		&f.findings, found) {
		m.Findings = found
	}
	if len(m.GetKeys()) == 0 && m.GetTasks() == nil && m.GetFindings() == nil {
		return nil
	}
	return m
}

// another reports whether a message is another than the one before, and keeps it.
func another(was *string, m proto.Message) bool {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil || "+"+string(b) == *was {
		return false
	}
	*was = "+" + string(b)
	return true
}

// concerning are the findings about a host's uplinks.
func concerning(v *fabric.Verdict, id string) (list []fabric.Finding) {
	for _, f := range v.Findings {
		if slices.Contains(f.Hosts, id) {
			list = append(list, f)
		}
	}
	return list
}

// Read is what another controller has not read yet of what this one's own hosts say.
func (h *Hub) Read(q *controllerv1.ReadProbesHereRequest) *controllerv1.ReadProbesHereResponse {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := &controllerv1.ReadProbesHereResponse{Start: h.start, After: h.version, Whole: q.GetStart() != h.start,
		Mute: h.muteHere(h.Now())}
	for _, one := range h.hosts {
		if one.at != "" || !out.Whole && one.version <= q.GetAfter() {
			continue
		}
		out.Hosts = append(out.Hosts, &controllerv1.HostProbes{Host: one.id, Name: one.name, Uplinks: one.uplinks,
			Results: one.found, Gone: !one.gone.IsZero()})
	}
	return out
}

// Asks is what to ask another controller.
func (h *Hub) Asks(controller string) *controllerv1.ReadProbesHereRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.heard[controller]
	return &controllerv1.ReadProbesHereRequest{Start: at.start, After: at.after}
}

// Learn takes in what another controller's hosts say. known reports whether a host is of the cluster. It is called
// without the hub's lock: whoever knows the hosts holds a lock of its own while it calls Remove.
func (h *Hub) Learn(controller string, m *controllerv1.ReadProbesHereResponse, known func(id string) bool) {
	there, member := map[string]bool{}, map[string]bool{}
	for _, said := range m.GetHosts() {
		member[said.GetHost()] = known(said.GetHost())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard[controller] = heard{m.GetStart(), m.GetAfter()}
	if !slices.Equal(h.mute[controller], m.GetMute()) {
		h.mute[controller], h.dirty = m.GetMute(), true
	}
	for _, said := range m.GetHosts() {
		there[said.GetHost()] = true
		one := h.hosts[said.GetHost()]
		if h.followers[said.GetHost()] != nil || said.GetGone() && (one == nil || one.at != controller) ||
			!member[said.GetHost()] {
			continue
		}
		if one == nil || one.at != controller || !one.gone.IsZero() && !said.GetGone() {
			one = &host{id: said.GetHost(), name: said.GetName(), at: controller, since: h.Now()}
			h.hosts[one.id] = one
		}
		one.set(said.GetUplinks(), said.GetResults())
		if said.GetGone() && one.gone.IsZero() {
			one.gone = h.Now()
		}
		h.dirty = true
	}
	if !m.GetWhole() {
		return
	}
	for id, one := range h.hosts {
		if one.at == controller && !there[id] && one.gone.IsZero() {
			one.gone, h.dirty = h.Now(), true
		}
	}
}

// Lost takes in that another controller does not answer: its hosts are on their way to others, or without one.
func (h *Hub) Lost(controller string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.heard, controller)
	delete(h.mute, controller)
	for _, one := range h.hosts {
		if one.at == controller && one.gone.IsZero() {
			one.gone, h.dirty = h.Now(), true
		}
	}
}
