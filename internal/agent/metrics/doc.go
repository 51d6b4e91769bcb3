// Package metrics exports a host's counters and states to Prometheus: which metrics there are, how a scrape fills
// them, and where they are served. Its labels are names from the configuration and words of fixed lists, so that
// guests cannot create series.
//
//layout:floor=process
package metrics
