package health

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"heddle/internal/api"
)

// Write prints a status on one screen: what the cluster is, and what is not as it should be.
func Write(w io.Writer, s *api.ControllerStatus) error {
	lines := [][2]string{
		{"cluster", fmt.Sprintf("%s (%s), epoch %d", s.Name, s.Cluster, s.Epoch)},
		{"controller", fmt.Sprintf("%s, version %s, since %s", s.Controller, s.Version,
			s.Started.Local().Format(time.DateTime))},
		{"definition", fmt.Sprintf("revision %d", s.Revision)},
		{"hosts", hostsText(s.Hosts)},
		{"store", storeText(&s.Store)},
		{"certificates", fmt.Sprintf("root until %s, this controller until %s", s.RootEnds.UTC().Format(time.DateOnly),
			s.CertificateEnds.UTC().Format(time.DateOnly))},
	}
	for _, c := range s.Controllers {
		text := c.Address
		if c.URL != "" {
			text += ", " + c.URL
		}
		if c.Host != "" {
			text += ", a VM on host " + c.Host
		}
		if c.Self {
			text += " (this one)"
		}
		lines = append(lines, [2]string{"at", text})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%-13s %s\n", l[0], l[1]); err != nil {
			return err
		}
	}
	return writeProblems(w, s.Findings)
}

func writeProblems(w io.Writer, found []api.HealthFinding) error {
	n := 0
	for _, f := range found {
		if f.Level != api.HealthWrong && f.Level != api.HealthNote {
			continue
		}
		if n++; n == 1 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		text := f.Text
		if f.Remedy != "" {
			text += ": " + f.Remedy
		}
		if _, err := fmt.Fprintf(w, "%-6s %-9s %s\n", f.Level, f.Check, text); err != nil {
			return err
		}
	}
	if n > 0 {
		return nil
	}
	_, err := fmt.Fprint(w, "\nall is well\n")
	return err
}

func hostsText(by map[string]int) string {
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d %s", by[state], state))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func storeText(s *api.StoreStatus) string {
	kind := "etcd of others"
	if s.Embedded {
		kind = "etcd inside"
	}
	text := fmt.Sprintf("%s, revision %d, %d members, %s in use", kind, s.Revision, len(s.Members), size(s.InUse))
	if len(s.Members) == 1 {
		text = strings.Replace(text, "1 members", "1 member", 1)
	}
	if s.Quota > 0 {
		text += " of " + size(s.Quota)
	}
	return text
}
