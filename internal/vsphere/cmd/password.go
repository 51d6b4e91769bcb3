package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// mostPassword is the size of a password that is taken, in bytes.
const mostPassword = 4096

// password is that of the file, of the environment, or what is typed at the terminal.
func (p process) password(file, user string) (string, error) {
	switch {
	case file == "-":
		return onePassword(p.stdin)
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return "", errUsage{err}
		}
		defer f.Close()
		return onePassword(f)
	}
	if word := p.getenv("HEDDLE_VCENTER_PASSWORD"); word != "" {
		return word, nil
	}
	in, ok := p.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return "", errUsage{errors.New("there is no terminal to ask for the password: use --password-file FILE, or " +
			"HEDDLE_VCENTER_PASSWORD")}
	}
	fmt.Fprintf(p.stderr, "Password of %s: ", user)
	word, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(p.stderr)
	return string(word), err
}

// onePassword is the first line of a file.
func onePassword(from io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(from, mostPassword+1))
	if err != nil {
		return "", fmt.Errorf("the password can't be read: %w", err)
	}
	word, _, _ := strings.Cut(string(text), "\n")
	word = strings.TrimSuffix(word, "\r")
	if word == "" || len(text) > mostPassword {
		return "", errUsage{fmt.Errorf("the file of the password has to have it as its first line, and at most %d "+
			"bytes", mostPassword)}
	}
	return word, nil
}
