// Package export sends the audit log of a controller elsewhere as it is written: to a file, a syslog server, or an
// HTTPS collector. What could not be delivered is sent later, in order, as long as the log has it.
//
//layout:floor=platform
package export
