package rpc

// endAll ends all connections of hosts.
func (f *fleet) endAll(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if h.conn != nil {
			h.conn.end(why)
		}
	}
}
