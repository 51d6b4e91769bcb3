package advise

import "heddle/internal/api"

// makeRoom is what to do where no change can be kept.
const makeRoom = "Make room on the file system that is named, or have it mounted so that it can be written."

func controllerRules() []Rule {
	return []Rule{{"no-controller", api.FindingWrong, "a host of a cluster has no controller",
		"for how long no controller has answered, and what the host knows of its own identity in the cluster",
		"ports go on as they are; changes of the definition do not reach the host, and nobody else sees it",
		"See that a controller is reached, or join again: heddle host show says what is wrong.",
		noController}, {"state-directory", api.FindingWrong, "no change can be kept on the host's disk",
		"the space, the files and the mode of the file system with the agent's state",
		"changes are refused, and so is what controllers send, while ports go on as they are",
		makeRoom,
		stateDirectory}}
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

func stateDirectory(l *look) []api.Finding {
	if l.StateFault == "" {
		return nil
	}
	return []api.Finding{{Sign: l.StateFault, Change: makeRoom, Command: "heddle status", FirstSeen: l.Now,
		LastSeen: l.Now, Now: true}}
}
