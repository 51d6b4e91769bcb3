package advise

import "heddle/internal/api"

func controllerRules() []Rule {
	return []Rule{{"no-controller", api.FindingWrong, "a host of a cluster has no controller",
		"for how long no controller has answered, and what the host knows of its own identity in the cluster",
		"ports go on as they are; changes of the definition do not reach the host, and nobody else sees it",
		"See that a controller is reached, or join again: heddle host show says what is wrong.",
		noController}}
}

func noController(l *look) []api.Finding {
	if l.Membership == nil {
		return nil
	}
	t := l.Membership.Trouble(l.Now)
	if t == nil {
		return nil
	}
	return []api.Finding{{Sign: t.Text, Change: t.Remedy, Command: t.Command, FirstSeen: l.Membership.Since,
		LastSeen: l.Now, Now: true}}
}
