package cmd

import (
	"context"
	"slices"
	"strings"

	"heddle/internal/lab/adapters"
	"heddle/internal/lab/allpairs"
	"heddle/internal/lab/attack"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/hostile"
	"heddle/internal/lab/live"
	"heddle/internal/lab/migration"
	"heddle/internal/lab/msgsize"
	"heddle/internal/lab/outage"
	"heddle/internal/lab/report"
)

// Entry is something that comes with the program.
type Entry struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// program is an experiment with code of its own, on real traffic only.
type program struct {
	Entry
	// rows are the names of its rows.
	rows func() []string
	// check returns what is wrong with the request.
	check func(Run) error
	run   func(context.Context, Run) (*report.Report, error)
}

// programs lists the experiments with code of their own.
func programs() []program {
	return []program{
		own(live.Name, live.Title, live.RowNames, liveOptions, live.Options.Check, runLive),
		own(outage.Name, outage.Title, outage.RowNames, outageOptions, outage.Options.Check, outage.Run),
		own(outage.TeamingName, outage.TeamingTitle, outage.TeamingRowNames, outageOptions, outage.Options.CheckTeaming,
			outage.RunTeaming),
		own(hostile.Name, hostile.Title, hostile.RowNames, hostileOptions, hostile.Options.Check, runHostile),
		own(attack.Name, attack.Title, attack.RowNames, attackOptions, attack.Options.Check, attack.Run),
		own(adapters.Name, adapters.Title, adapters.RowNames, adaptersOptions, adapters.Options.Check, adapters.Run),
		own(allpairs.Name, allpairs.Title, allpairs.RowNames, allPairsOptions, allpairs.Options.Check, runAllPairs),
		own(migration.Name, migration.Title, migration.RowNames, migrationOptions, migration.Options.Check,
			migration.Run),
		own(migration.PortMoveName, migration.PortMoveTitle, migration.PortMoveRowNames, migrationOptions,
			migration.Options.CheckPortMove, migration.RunPortMove),
		own(msgsize.Name, msgsize.Title, msgsize.RowNames, msgsizeOptions, msgsize.Options.Check, runMsgsize),
	}
}

// own makes a program from the functions of its package, which has its own options.
func own[O any](name, title string, rows func() []string, options func(Run) O, check func(O) error,
	run func(context.Context, O) (*report.Report, error)) program {
	return program{
		Entry: Entry{name, title},
		rows:  rows,
		check: func(r Run) error { return check(options(r)) },
		run:   func(ctx context.Context, r Run) (*report.Report, error) { return run(ctx, options(r)) },
	}
}

func liveOptions(r Run) live.Options {
	return live.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Progress: r.Progress}
}

func outageOptions(r Run) outage.Options {
	return outage.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Progress: r.Progress}
}

func hostileOptions(r Run) hostile.Options {
	return hostile.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Progress: r.Progress}
}

func attackOptions(r Run) attack.Options {
	return attack.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Progress: r.Progress}
}

func adaptersOptions(r Run) adapters.Options {
	return adapters.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Progress: r.Progress}
}

func migrationOptions(r Run) migration.Options {
	return migration.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Moves: r.Moves, Rate: r.Rate,
		Progress: r.Progress}
}

func msgsizeOptions(r Run) msgsize.Options {
	return msgsize.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Progress: r.Progress}
}

func runLive(ctx context.Context, o live.Options) (*report.Report, error) {
	all, ports, err := live.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return live.Report(all, ports), nil
}

func allPairsOptions(r Run) allpairs.Options {
	return allpairs.Options{RunDir: r.RunDir, Quick: r.Quick, Rows: r.Rows, Progress: r.Progress}
}

func runAllPairs(ctx context.Context, o allpairs.Options) (*report.Report, error) {
	all, err := allpairs.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return allpairs.Report(all), nil
}

func runHostile(ctx context.Context, o hostile.Options) (*report.Report, error) {
	all, err := hostile.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return hostile.Report(all), nil
}

func runMsgsize(ctx context.Context, o msgsize.Options) (*report.Report, error) {
	m, err := msgsize.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return m.Report(), nil
}

// Experiments lists everything that "lab run" runs: first the experiments with rows and scenarios, then those with code
// of their own.
func Experiments() ([]Entry, error) {
	var all []Entry
	for _, name := range experiment.Names() {
		e, err := experiment.Find(name)
		if err != nil {
			return nil, err
		}
		all = append(all, Entry{name, e.Title})
	}
	for _, p := range programs() {
		all = append(all, p.Entry)
	}
	return all, nil
}

// ExperimentNames are the names of everything that "lab run" runs.
func ExperimentNames() []string {
	names := slices.Clone(experiment.Names())
	for _, p := range programs() {
		names = append(names, p.Name)
	}
	return names
}

// RowNames are the names of an experiment's rows; none where there is no such experiment.
func RowNames(name string) []string {
	for _, p := range programs() {
		if p.Name == name {
			return p.rows()
		}
	}
	e, err := experiment.Find(name)
	if err != nil {
		return nil
	}
	return experiment.RowNames(e.Rows, func(r experiment.Row) string { return r.Name })
}

// title says what the experiment of a report shows; "" if there is no experiment with that name.
func title(reported string) string {
	name, _, _ := strings.Cut(reported, " ") // what follows says how it was run, as in "NAME (simulated)"
	all, err := Experiments()
	if err != nil {
		return ""
	}
	for _, e := range all {
		if e.Name == name {
			return e.Title
		}
	}
	return ""
}
