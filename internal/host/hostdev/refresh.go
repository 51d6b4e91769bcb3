package hostdev

// Refresh reads all devices again, and the other ends that were read before. Where nothing changed it keeps what it
// has: a thousand ports are read once a minute, and hardly ever differ.
func (h *Host) Refresh() error {
	links, err := h.ask.all()
	if err != nil {
		return err
	}
	own, err := h.ask.addresses()
	if err != nil {
		return err
	}
	changed := !own.same(h.addresses)
	h.addresses = own
	for _, l := range links {
		if known, ok := h.links[l.index]; !ok || known != l || h.names[l.name] != l.index {
			h.put(l)
		}
	}
	for _, index := range missing(h.links, links) {
		h.drop(index)
	}
	others, err := h.peers.refresh(h.ask)
	if changed || others {
		clear(h.shown)
	}
	return err
}

// missing are the devices that are not in the list, all of which are known.
func missing(known map[uint32]link, list []link) (gone []uint32) {
	if len(known) == len(list) {
		return nil
	}
	there := make(map[uint32]bool, len(list))
	for _, l := range list {
		there[l.index] = true
	}
	for index := range known {
		if !there[index] {
			gone = append(gone, index)
		}
	}
	return gone
}

// peers contains the other ends in other namespaces that have been requested.
type peers map[linkKey]End

// refresh reads them again. One that is not there any more is forgotten: Device asks for it again. After an error all
// of them are.
func (p peers) refresh(ask *asker) (changed bool, err error) {
	for k, old := range p {
		now, found, err := ask.one(k)
		switch {
		case err != nil:
			clear(p)
			return true, err
		case !found:
			delete(p, k)
			changed = true
		case now.end != old:
			p[k] = now.end
			changed = true
		}
	}
	return changed, nil
}
