package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

func YesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func HostPrefix(host string) string {
	if host == "" {
		return ""
	}
	return host + ":"
}

// Wrap breaks a text between words into lines of at most width characters; a longer word has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// HowMany is a number with its noun: "1 port", "3 ports".
func HowMany(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func OutOf(up, all int) string { return fmt.Sprintf("%d of %d", up, all) }

// Number returns a number as text, "-" for 0.
func Number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
