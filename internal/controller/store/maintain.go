package store

// Maintain says how the database is kept small.
type Maintain struct{}

func (m Maintain) withDefaults(embedded bool) Maintain { return m }
