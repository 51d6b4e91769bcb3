package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/identity"
)

// Bounds beyond which something is wrong, or worth a note.
const (
	// ofQuota are the shares of etcd's quota.
	noteQuota, wrongQuota = 0.6, 0.8
	// mostLag is how many entries of etcd's log a member may be behind.
	mostLag = 1000
	// noteDisk and wrongDisk are the shares of the disk that have to be free, leastDisk what is enough in any case.
	noteDisk, wrongDisk = 0.15, 0.05
	leastDisk           = 20 << 30
	// mostSkew is how far two clocks may differ.
	mostSkew = 30 * time.Second
	// mostSkewToHosts is how far the clocks of most hosts may differ from the controller's, and leastHosts how many
	// have to be connected. A host says its time once, when it connects.
	mostSkewToHosts = 5 * time.Minute
	leastHosts      = 3
)

// CheckHosts is the check of hosts that do not have the definition active.
const CheckHosts = "hosts"

// HostProblem is a host that does not have the definition active.
type HostProblem struct{ Name, State, Why string }

// Examine looks at a controller's state, of which Findings and Healthy are not set yet.
func Examine(s *api.ControllerStatus, hosts []HostProblem) (found []api.HealthFinding) {
	found = append(found, store(&s.Store))
	found = append(found, alarms(&s.Store), quota(&s.Store))
	found = append(found, members(&s.Store)...)
	found = append(found, places(s.Controllers)...)
	found = append(found, expiring(s)...)
	found = append(found, rotation(s))
	found = append(found, outOfSync(s, hosts)...)
	found = append(found, disk(s), clock(s))
	return append(found, snapshots(s)...)
}

// Healthy reports whether nothing is wrong.
func Healthy(found []api.HealthFinding) bool {
	return !slices.ContainsFunc(found, func(f api.HealthFinding) bool { return f.Level == api.HealthWrong })
}

func finding(check string, level api.HealthLevel, text, remedy string) api.HealthFinding {
	return api.HealthFinding{Check: check, Level: level, Text: text, Remedy: remedy}
}

func fine(check, text string) api.HealthFinding { return finding(check, api.HealthOK, text, "") }

func store(s *api.StoreStatus) api.HealthFinding {
	const check = "store"
	switch {
	case s.Stale != "":
		return finding(check, api.HealthWrong, "what is read may be old, and nothing can be changed: "+s.Stale,
			"start the controllers that are down; most of them are needed for a change. Hosts go on meanwhile")
	case s.Error != "":
		return finding(check, api.HealthWrong, "etcd does not answer: "+s.Error, "see the controller's log")
	}
	return fine(check, "answers, and is current")
}

func alarms(s *api.StoreStatus) api.HealthFinding {
	if len(s.Alarms) == 0 {
		return fine("alarms", "none")
	}
	return finding("alarms", api.HealthWrong, "etcd has raised "+strings.Join(s.Alarms, ", "),
		"with NOSPACE nothing can be changed: the controller makes space by itself within a minute; where that is "+
			"not enough, start every controller with a larger --etcd-quota. With CORRUPT see "+
			"how-to/many-hosts/several-controllers.md of the documentation")
}

func quota(s *api.StoreStatus) api.HealthFinding {
	const check = "quota"
	if s.Quota <= 0 || s.Error != "" {
		return finding(check, api.HealthUnknown, "the quota of etcd's database is not known", "")
	}
	share := float64(s.Size) / float64(s.Quota)
	text := fmt.Sprintf("etcd's database has %s of its %s, %s of it in use", size(s.Size), size(s.Quota), size(s.InUse))
	const remedy = "the controller compacts and defragments by itself; where what is in use grows, remove objects " +
		"that are no longer needed, or start every controller with a larger --etcd-quota"
	switch {
	case s.Full:
		return finding(check, api.HealthWrong, text+": no changes are taken but what only removes, revocations and "+
			"claims of static ports", remedy)
	case share >= wrongQuota:
		return finding(check, api.HealthWrong, text, remedy)
	case share >= noteQuota:
		return finding(check, api.HealthNote, text, remedy)
	}
	return fine(check, text)
}

func members(s *api.StoreStatus) (found []api.HealthFinding) {
	const check = "members"
	voters, leader := 0, false
	for _, m := range s.Members {
		leader = leader || m.Leader
		name := cmp.Or(m.Name, "that has not started")
		switch {
		case m.Error != "":
			found = append(found, finding(check, api.HealthWrong, "member "+name+": "+m.Error,
				"start its controller, or remove the member if it is lost"))
		case m.Lag > mostLag:
			found = append(found, finding(check, api.HealthWrong,
				fmt.Sprintf("member %s is %d entries behind", name, m.Lag), "look at its disk and its network"))
		case m.Learner:
			found = append(found, finding(check, api.HealthNote, "member "+name+" has no vote yet: it copies the state",
				""))
		}
		if !m.Learner {
			voters++
		}
	}
	if len(s.Members) > 0 && !leader && s.Error == "" {
		found = append(found, finding(check, api.HealthWrong, "there is no leader: nothing can be changed",
			"start the controllers that are down"))
	}
	if voters > 0 && voters%2 == 0 {
		found = append(found, finding(check, api.HealthNote, fmt.Sprintf("%d members vote: that bears the loss of no "+
			"more than %d would", voters, voters-1), "add one, or remove one"))
	}
	if len(found) == 0 && len(s.Members) > 0 {
		found = append(found, fine(check, fmt.Sprintf("%d, and none is behind", len(s.Members))))
	}
	return found
}

func expiring(s *api.ControllerStatus) (found []api.HealthFinding) {
	for _, w := range s.Expiring {
		level := api.HealthWrong
		if w.Level == api.ExpirySoon {
			level = api.HealthNote
		}
		text, remedy, _ := strings.Cut(w.Text, ": ")
		found = append(found, finding("expiry", level, text, remedy))
	}
	if len(found) == 0 {
		found = append(found, fine("expiry", fmt.Sprintf("nothing within 30 days; the root until %s, the controller's "+
			"certificate until %s", s.RootEnds.UTC().Format(time.DateOnly),
			s.CertificateEnds.UTC().Format(time.DateOnly))))
	}
	return found
}

func rotation(s *api.ControllerStatus) api.HealthFinding {
	if s.RootStage == "" || s.RootStage == "steady" {
		return fine("root", "one, and no rotation is under way")
	}
	return finding("root", api.HealthNote, "a rotation of the root is under way: "+s.RootStage,
		"go on with it: heddle ca show")
}

// mostNamed is how many hosts are named.
const mostNamed = 5

func outOfSync(s *api.ControllerStatus, hosts []HostProblem) (found []api.HealthFinding) {
	all := 0
	for _, n := range s.Hosts {
		all += n
	}
	by := map[string][]string{}
	for _, h := range hosts {
		text := h.Name
		if h.Why != "" {
			text += " (" + h.Why + ")"
		}
		by[h.State] = append(by[h.State], text)
	}
	for _, c := range []struct {
		state, what, remedy string
		level               api.HealthLevel
	}{
		{"out-of-sync", "cannot activate the definition", "correct what it names: heddle host list", api.HealthWrong},
		{"reverted", "went back, since the change cut it off", "correct the change: heddle host list", api.HealthWrong},
		{"down", "cut off from the physical network with all guests", "look at the links that it names: heddle host " +
			"list, heddle uplink list --host", api.HealthWrong},
		{"disconnected", "not connected; it goes on by what it has", "heddle host show on the host says why",
			api.HealthNote},
		{"warning", "reports something", "heddle host list", api.HealthNote},
	} {
		list := by[c.state]
		if len(list) == 0 {
			continue
		}
		text := fmt.Sprintf("%d of %d %s: %s", len(list), all, c.what, strings.Join(list[:min(len(list), mostNamed)],
			", "))
		if n := len(list) - mostNamed; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		found = append(found, finding(CheckHosts, c.level, text, c.remedy))
	}
	if len(found) == 0 {
		found = append(found, fine("hosts", fmt.Sprintf("%d, and all have the definition active or will soon", all)))
	}
	return found
}

func disk(s *api.ControllerStatus) api.HealthFinding {
	const check = "disk"
	if s.DiskSize <= 0 {
		return finding(check, api.HealthUnknown, "the space on the controller's disk is not known", "")
	}
	share := float64(s.DiskFree) / float64(s.DiskSize)
	text := fmt.Sprintf("%s of %s are free", size(s.DiskFree), size(s.DiskSize))
	const remedy = "make space on the file system with the controller's directory: without it nothing can be changed"
	switch {
	case s.DiskFree >= leastDisk:
	case share < wrongDisk:
		return finding(check, api.HealthWrong, text, remedy)
	case share < noteDisk:
		return finding(check, api.HealthNote, text, remedy)
	}
	return fine(check, text)
}

func clock(s *api.ControllerStatus) api.HealthFinding {
	const check, remedy = "clock", "let it follow time servers (chrony, systemd-timesyncd): certificates and tokens " +
		"begin " +
		"and end by it"
	switch s.Clock {
	case api.ClockSynchronised:
		return fine(check, "follows others")
	case api.ClockFree:
		return finding(check, api.HealthNote, "the controller's clock follows no other", remedy)
	}
	return finding(check, api.HealthUnknown, "whether the controller's clock follows others can't be found out", "")
}

// Skew holds somebody's clock, such as "the controller"'s, against that of who asked; took is how long the answer took.
func Skew(whose, than string, theirs, mine time.Time, took time.Duration) (api.HealthFinding, bool) {
	off := theirs.Sub(mine)
	if off.Abs() <= mostSkew+took {
		return api.HealthFinding{}, false
	}
	word, unit := "ahead of", time.Second
	if off < 0 {
		word = "behind"
	}
	if off.Abs() > 10*time.Minute {
		unit = time.Minute
	}
	return finding("clock", api.HealthWrong, fmt.Sprintf("%s's clock is %s %s %s's", whose, off.Abs().Round(unit), word,
		than), "correct the one that is wrong: certificates and tokens begin and end by it"), true
}

// SkewToHosts holds a controller's clock against those of the hosts that are connected to it: by how much each is
// ahead. Where most hosts agree that the controller's is wrong, it probably is: with a clock that is ahead, it issues
// certificates that nobody takes yet.
func SkewToHosts(ahead []time.Duration) (api.HealthFinding, bool) {
	if len(ahead) < leastHosts {
		return api.HealthFinding{}, false
	}
	slices.Sort(ahead)
	low, middle, high := ahead[len(ahead)/4], ahead[len(ahead)/2], ahead[len(ahead)*3/4]
	if min(low.Abs(), high.Abs()) <= mostSkewToHosts || (low < 0) != (high < 0) {
		return api.HealthFinding{}, false
	}
	word := "ahead of"
	if middle > 0 {
		word = "behind"
	}
	return finding("clock", api.HealthWrong, fmt.Sprintf("this controller's clock is %s %s those of most hosts",
		middle.Abs().Round(time.Minute), word), "correct it: the certificates that it issues begin and end by it"), true
}

// TooFarAhead holds a controller's clock against those of others, by how much each is ahead of it: certificates that it
// made now would begin later than most of the others accept, by which they count from identity.Backdate before they are
// made. by is how far it is ahead of the nearest of those.
func TooFarAhead(ahead []time.Duration) (by time.Duration, wrong bool) {
	n := 0
	for _, d := range ahead {
		if d < -identity.Backdate {
			if n++; n == 1 || -d < by {
				by = -d
			}
		}
	}
	return by, 2*n > len(ahead)
}

// size is an amount of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
}
