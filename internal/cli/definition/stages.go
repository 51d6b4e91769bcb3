package definition

import (
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// stagedWay is how hosts make a change of the definition in stages.
type stagedWay struct {
	api.InStages
	follow bool
}

// stageWait is how long hosts are watched after each stage, unless somebody says.
const stageWait = 5 * time.Minute

func (w *stagedWay) flags(c *cobra.Command) {
	c.Flags().StringVar(&w.Stages, "stages", "", "the hosts change one stage after the other: numbers of hosts, "+
		"parts of all hosts, or a label with its value, such as 1,10%,100% or env=test,100%")
	c.Flags().StringVar(&w.Halt, "halt", "stop", "with --stages: what to do when hosts with the change fare worse "+
		"than the others: stop, or rollback (take the change back)")
	c.Flags().StringVar(&w.By, "by", "random", "with --stages: a label whose hosts change together (rack), or random")
	c.Flags().DurationVar(&w.Watch, "watch", 0, "with --stages: how long hosts are watched before the first stage "+
		"(default a tenth of --wait, 1s to 30s)")
	c.Flags().BoolVar(&w.follow, "follow", false, "with --stages: show how it goes until it has ended or halted")
	choice(c, "halt", "stop", "rollback")
}

// choice completes a flag with its words.
func choice(c *cobra.Command, name string, words ...string) {
	_ = c.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}

// stages is how hosts change in stages; nil where all change at once. wait is how long they are watched after each.
func (w *stagedWay) stages(c *cobra.Command, q *api.Define) error {
	if w.Stages == "" {
		if c.Flags().Changed("stages") {
			return cli.Usagef("--stages: say which hosts change when, such as 1,10%%,100%%")
		}
		for _, name := range []string{"halt", "by", "watch", "follow"} {
			if c.Flags().Changed(name) {
				return cli.Usagef("--%s is for a change that hosts make in stages: add --stages", name)
			}
		}
		return nil
	}
	if w.Halt != "stop" && w.Halt != "rollback" {
		return cli.Usagef("--halt %q: use stop or rollback", w.Halt)
	}
	if q.Together != nil {
		return cli.Usagef("a change is made in stages or together: give --stages or --together")
	}
	if w.Wait = stageWait; c.Flags().Changed("wait") {
		w.Wait = q.Wait
	}
	if w.Wait < time.Second {
		return cli.Usagef("--wait %s: give how long hosts are watched after each stage, at least 1s", w.Wait)
	}
	q.Stages, q.Wait = &w.InStages, 0
	return nil
}
