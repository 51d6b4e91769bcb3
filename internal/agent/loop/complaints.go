package loop

import "log/slog"

// Complaints logs errors that last once, until they change or go away. Only the loop uses it.
type Complaints struct {
	log  *slog.Logger
	last string
}

// NewComplaints returns one that logs to log.
func NewComplaints(log *slog.Logger) *Complaints { return &Complaints{log: log} }

// Complain logs an error, unless it is the one that was logged last.
func (c *Complaints) Complain(what string, err error) {
	if text := what + ": " + err.Error(); text != c.last {
		c.last = text
		c.log.Error(what, "err", err)
	}
}

// Complaint is the error that was logged last, "" for none.
func (c *Complaints) Complaint() string { return c.last }

// Contented forgets the last error: if it comes again, it is logged again.
func (c *Complaints) Contented() { c.last = "" }
