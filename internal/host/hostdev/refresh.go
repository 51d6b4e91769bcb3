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

// Look asks the kernel which device has a name now, and reports whether that is another one than was known. Its
// notifications may still be queued. What else changed about a device is left to them, or they would not be news.
func (h *Host) Look(name string) (changed bool, err error) {
	l, found, err := h.ask.named(name)
	if err != nil {
		return false, err
	}
	old, known := h.names[name]
	if known == found && (!found || old == l.index) {
		return false, nil
	}
	if known {
		if err := h.refreshIndex(old); err != nil { // it may have another name
			return true, err
		}
	}
	if found {
		h.put(l)
	}
	return true, nil
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

// end is one of them, which is read if it has not been requested before.
func (p peers) end(ask *asker, k linkKey) (End, bool, error) {
	if end, ok := p[k]; ok {
		return end, true, nil
	}
	l, found, err := ask.one(k)
	if err != nil || !found {
		return End{}, false, err
	}
	p[k] = l.end
	return l.end, true, nil
}

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
