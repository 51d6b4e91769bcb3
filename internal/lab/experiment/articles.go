package experiment

import "fmt"

// Article is a published measurement that experiments repeat.
type Article struct {
	Title string
	Date  string
	URL   string // "" where its present address is not known
}

func firstArticle() Article {
	return Article{"MAC Learning is your friend", "2024-11-27", "https://sdn-warrior.org/posts/mac-learning/"}
}

func secondArticle() Article {
	return Article{"The effect of using MAC Learning in ESXi nested labs", "2024-11-26",
		"https://cybernils.net/2024/11/26/the-effect-of-using-mac-learning-in-esxi-nested-labs"}
}

func thirdArticle() Article {
	return Article{Title: "How traffic routes between VMs on ESX hosts", Date: "2008-11-13"}
}

// String is the article's name, date and address.
func (a Article) String() string {
	if a.URL == "" {
		return fmt.Sprintf("%q (%s)", a.Title, a.Date)
	}
	return fmt.Sprintf("%q (%s), %s", a.Title, a.Date, a.URL)
}

// What the first two articles measured with iperf3 between nested hosts of one physical host, in Gb/s.
const (
	firstPromiscuous, firstLearning   = 1.16, 20.8
	secondPromiscuous, secondLearning = 0.177, 8.52
)

// nestedSources says which articles the nested experiment repeats, and what they found.
func nestedSources() []string {
	return []string{
		fmt.Sprintf("Articles: (1) %s. (2) %s. The second names neither the kind of switch nor the number of "+
			"uplinks; its figures stand beside the rows with two uplinks.",
			firstArticle(), secondArticle()),
		fmt.Sprintf("MAC learning was %.0f times as fast as promiscuous mode in the first article (%v against %v "+
			"Gb/s), and %.0f times in the second (%v against %v Gb/s).",
			firstLearning/firstPromiscuous, firstLearning, firstPromiscuous, secondLearning/secondPromiscuous,
			secondLearning, secondPromiscuous),
	}
}
