package migration

import (
	"heddle/internal/abi"
	"heddle/internal/agent/state"
)

// records are how far the moves of each adapter have come.
type records struct {
	document *state.Travels
	known    map[string]*state.Travel // by the adapter
}

func keyOf(vm, adapter string) string { return vm + "/" + adapter }

// resume takes over the records of the previous agent.
func resume(document *state.Travels) records {
	rs := records{document: document}
	rs.index()
	for _, t := range *document {
		if t.Away != nil {
			t.Away.Resumed()
		}
	}
	return rs
}

// index makes the index that of the present list.
func (rs *records) index() {
	rs.known = make(map[string]*state.Travel, len(*rs.document))
	for _, t := range *rs.document {
		rs.known[keyOf(t.VM, t.Adapter)] = t
	}
}

// all are the records of all adapters, the oldest first.
func (rs *records) all() state.Travels { return *rs.document }

// get returns the record of an adapter, nil for none.
func (rs *records) get(key string) *state.Travel { return rs.known[key] }

// of returns the record of an adapter, made where it is missing.
func (rs *records) of(a Adapter) *state.Travel {
	if rs.known[a.key()] == nil {
		rs.document.Add(a.VM, a.Name, abi.MaxPorts)
		rs.index() // an old one may have gone
	}
	return rs.known[a.key()]
}

// to returns the record with a move to this host, nil for none.
func (rs *records) to(move string) *state.Travel {
	for _, t := range *rs.document {
		if t.Here != nil && t.Here.Move == move {
			return t
		}
	}
	return nil
}
