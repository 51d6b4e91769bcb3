package docgen

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestCommandsInThePagesExist parses every command line of heddle and of make in the pages, as the programs would.
func TestCommandsInThePagesExist(t *testing.T) {
	targets := makeTargets(t)
	commands := 0
	eachPage(t, func(page, text string) {
		if page == "CHANGELOG.md" { // tells of commands as they were
			return
		}
		for _, l := range commandLines(text) {
			for _, words := range simpleCommands(l.text) {
				err := error(nil)
				switch {
				case isHeddle(words):
					commands++
					err = checkHeddle(words[1:], l.whole)
				case words[0] == "make":
					err = checkMake(words[1:], targets)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", page, l.text, err)
				}
			}
		}
	})
	if commands < 100 {
		t.Errorf("only %d commands found in all pages", commands)
	}
}

// TestPagesThatTheProgramNamesExist: an installed program has no docs/ beside it, so that a text names a page by its
// path in the documentation, wherever that is.
func TestPagesThatTheProgramNamesExist(t *testing.T) {
	named := 0
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "/dev/") || strings.Contains(path, "/test/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range namedPage.FindAllStringSubmatch(goComment.ReplaceAllString(string(text), ""), -1) {
			named++
			if _, err := os.Stat(filepath.Join(root, "docs", m[2])); err != nil || m[1] == "docs/" {
				t.Errorf("%s names %s%s; say \"how-to/TASK/PAGE.md of the documentation\"", path, m[1], m[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 4 {
		t.Errorf("only %d pages named", named)
	}
}

var namedPage = regexp.MustCompile(`((?:[\w.-]+/)*)((?:how-to/[\w-]+|reference|explanation|tutorial)/[\w-]+\.md)`)

// TestCommandsInThePicturesExist: a picture's commands are typed as well.
func TestCommandsInThePicturesExist(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, "docs/pictures/*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inPicture.FindAllStringSubmatch(string(text), -1) {
			commands++
			if err := checkHeddle(strings.Fields(m[1]), true); err != nil {
				t.Errorf("%s: heddle %s: %v", filepath.Base(name), m[1], err)
			}
		}
	}
	if commands == 0 {
		t.Error("no picture has a command")
	}
}

// TestCommandsOfThePlaybooksExist: Ansible itself runs by hand only (docs/how-to/many-hosts/many-hosts.md).
func TestCommandsOfThePlaybooksExist(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, "packaging/ansible/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inPlaybook.FindAllStringSubmatch(string(text), -1) {
			commands++
			words := simpleCommands(jinja.ReplaceAllStringFunc(m[1], func(s string) string {
				if strings.Contains(s, "'--") {
					return "" // options for some cases
				}
				return "1"
			}))[0]
			if err := checkHeddle(words[1:], true); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(name), m[1], err)
			}
		}
	}
	if commands < 8 {
		t.Errorf("only %d commands found in the playbooks", commands)
	}
}

// inPlaybook is a task's command, jinja what Ansible fills in.
var (
	inPlaybook = regexp.MustCompile(`(?m)^ +(?:cmd: )?(heddle [a-z][^\n]*)$`)
	jinja      = regexp.MustCompile(`\{\{.*?\}\}`)
)

// inPicture is a command that is a text of its own in an SVG.
var inPicture = regexp.MustCompile(`>heddle ([^<]+)</text>`)

func TestCheckHeddle(t *testing.T) {
	for line, good := range map[string]bool{
		"port list --switch lab":          true,
		"port":                            true,
		"lab exec l n ping -c 3 10.0.0.1": true,
		"port list --swich lab":           false,
		"port lst":                        false,
		"prt list":                        false,
		"port show":                       false,
		"port show a b":                   false,
		"bench frame --rounds many":       false,
		"port list -o json > ports.json":  true,
	} {
		t.Run(line, func(t *testing.T) {
			if err := checkHeddle(simpleCommands("heddle " + line)[0][1:], true); (err == nil) != good {
				t.Errorf("heddle %s: %v", line, err)
			}
		})
	}
	if err := checkHeddle([]string{"port", "show"}, false); err != nil {
		t.Errorf("a command named in a sentence without its argument: %v", err)
	}
}

func TestCommandLines(t *testing.T) {
	page := "Say `heddle port\nlist` or `heddle down`.\n```sh\n# heddle no\nA=b heddle x \\\n    -y 'p q'   # heddle " +
		"no\na | /bin/heddle z && nsenter --net=/n heddle w\n" +
		"install heddle /x\n/var/lib/vz/snippets/heddle 101 a\nheddle net0=web\n```\n```console\nguest1# heddle " +
		"u\nheddle output\n```\n```text\nheddle t\n```\n"
	var got []string
	for _, l := range commandLines(page) {
		for _, words := range simpleCommands(l.text) {
			if isHeddle(words) {
				got = append(got, fmt.Sprintf("%t%q", l.whole, words[1:]))
			}
		}
	}
	want := `[true["x" "-y" "p q"] true["z"] true["w"] true["u"] false["port" "list"] false["down"]]`
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

// commandLine is a line that a reader may type: whole, out of a block, or one that a sentence names, where arguments
// may be left out.
type commandLine struct {
	text  string
	whole bool
}

var (
	block     = regexp.MustCompile("(?ms)^[ \t]*```(\\w*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$")
	prompt    = regexp.MustCompile(`^\s*[\w-]*[#$] (.*)$`)
	inline    = regexp.MustCompile("`([^`]+)`")
	comment   = regexp.MustCompile(`(^|\s)#.*$`)
	separator = regexp.MustCompile(`\|\||&&|[|;&]`)
	word      = regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`)
)

// commandLines are the lines of a page's sh and console blocks, then its code spans.
func commandLines(text string) []commandLine {
	var lines []commandLine
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		for _, l := range strings.Split(strings.ReplaceAll(m[2], "\\\n", " "), "\n") {
			if m[1] == "console" {
				typed := prompt.FindStringSubmatch(l)
				if typed == nil {
					continue
				}
				l = typed[1]
			} else if m[1] != "sh" {
				continue
			}
			lines = append(lines, commandLine{l, true})
		}
	}
	for _, m := range inline.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		lines = append(lines, commandLine{strings.ReplaceAll(m[1], "\n", " "), false})
	}
	return lines
}

// simpleCommands are the commands of a line of shell, word by word, without comments, assignments and redirections, and
// without programs that run another one.
func simpleCommands(line string) [][]string {
	var commands [][]string
	for _, part := range separator.Split(comment.ReplaceAllString(line, ""), -1) {
		var words []string
		for _, w := range word.FindAllString(part, -1) {
			if strings.HasPrefix(w, ">") || strings.HasPrefix(w, "<") || strings.HasPrefix(w, "2>") {
				break
			}
			assigns := strings.Contains(w, "=") && !strings.HasPrefix(w, "-")
			wraps := w == "nsenter" || w == "sudo"
			if len(words) == 0 && (assigns || wraps || strings.HasPrefix(w, "--net=")) {
				continue
			}
			words = append(words, strings.Trim(w, `"'`))
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
	}
	return commands
}

// isHeddle says whether the words are a command of the program, and not of a hook script that has its name, nor a line
// such as "heddle net0=web" in the notes of a guest.
func isHeddle(words []string) bool {
	at, name := path.Split(words[0])
	hook := strings.HasSuffix(at, "/snippets/")
	return name == "heddle" && !hook && (len(words) == 1 || strings.HasPrefix(words[1], "-") ||
		!strings.Contains(words[1], "="))
}

// checkHeddle says whether the program would understand the words behind its name. Of a command that a sentence names,
// whole false, arguments may be missing, and values may be placeholders.
func checkHeddle(words []string, whole bool) error {
	program := commandTree()
	program.SetOut(io.Discard)
	c, rest, err := program.Find(words)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		var value *pflag.InvalidValueError
		switch {
		case errors.Is(err, pflag.ErrHelp):
			return nil
		case whole || !errors.As(err, &value):
			return err
		}
	}
	args := c.Flags().Args()
	if !c.Runnable() {
		if len(args) > 0 {
			return fmt.Errorf("%q has no command %q", c.CommandPath(), args[0])
		}
		return nil
	}
	if !whole && len(args) == 0 {
		return nil
	}
	return c.ValidateArgs(args)
}

var makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(string(text), -1) {
		targets[m[1]] = true
	}
	return targets
}

// checkMake says whether the Makefile has the targets that the words behind make name.
func checkMake(words []string, targets map[string]bool) error {
	for _, w := range words {
		if !strings.Contains(w, "=") && !strings.HasPrefix(w, "-") && !targets[w] {
			return fmt.Errorf("the Makefile has no target %s", w)
		}
	}
	return nil
}
