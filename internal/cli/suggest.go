package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// mostSuggested is how many commands are suggested at most; of a word that more have nothing is said.
const mostSuggested = 3

// leastSpelt is from how many letters on a word is looked for that is spelt otherwise.
const leastSpelt = 4

// NoSubcommand returns an error for a word that is not a command.
func NoSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if list := suggested(c, args[0]); len(list) > 0 {
		hint = "\ndid you mean " + strings.Join(list, ",\nor ") + "?"
	}
	return Usagef("unknown command %q for %q%s\n(see %q)", args[0], c.CommandPath(), hint, c.CommandPath()+" --help")
}

// suggested are the commands that somebody may mean by a word that is none below c: those spelt nearly so below it, or
// those of that name anywhere, or those spelt nearly so anywhere.
func suggested(c *cobra.Command, word string) (list []string) {
	c.SuggestionsMinimumDistance = 2 // in letters
	for _, s := range c.SuggestionsFor(word) {
		if len(word) < leastSpelt && !strings.HasPrefix(s, word) {
			continue // two letters of three make any word
		}
		return []string{quoted(c.CommandPath() + " " + s)}
	}
	for _, most := range []int{0, farSpelt(word)} {
		var found []*cobra.Command
		EveryCommand(c.Root(), func(o *cobra.Command) {
			if o.IsAvailableCommand() && o.HasParent() && spellsNearly(o, word, most) {
				found = append(found, o)
			}
		})
		if len(found) > mostSuggested {
			return nil
		}
		slices.SortStableFunc(found, func(a, b *cobra.Command) int {
			return cmp.Compare(len(a.CommandPath()), len(b.CommandPath()))
		})
		for _, o := range found {
			list = append(list, quoted(o.CommandPath()))
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

func quoted(command string) string { return fmt.Sprintf("%q", command) }

// farSpelt is by how many letters a word may be spelt wrong: short ones are soon another word.
func farSpelt(word string) int {
	switch {
	case len(word) < leastSpelt:
		return 0
	case len(word) < 7:
		return 1
	}
	return 2
}

// spellsNearly reports whether a word is a command's name, or an alias of it, but for so many letters.
func spellsNearly(c *cobra.Command, word string, most int) bool {
	return slices.ContainsFunc(append([]string{c.Name()}, c.Aliases...), func(name string) bool {
		return lettersApart(name, strings.ToLower(word)) <= most
	})
}

// lettersApart is by how many letters two words differ: left out, added, or another (Levenshtein distance).
func lettersApart(a, b string) int {
	x, y := []rune(a), []rune(b)
	last := make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		next := make([]int, len(y)+1)
		next[0] = i + 1
		for j := range y {
			other := last[j]
			if x[i] != y[j] {
				other++
			}
			next[j+1] = min(other, last[j+1]+1, next[j]+1)
		}
		last = next
	}
	return last[len(y)]
}
