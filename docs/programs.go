// Package docs has the part of the documentation that pages show.
package docs

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

//go:embed program-list.md
var programList string

// Program is a program that sends messages to a gateway.
type Program struct {
	Name  string // several are separated by commas
	Where []Part // where to click in it
	Enter []Part // what to enter there
	Token Token  // where it can put the token of a key
}

// Token is where a program can put the token of a key.
type Token int

// The places of tokens.
const (
	TokenInAddress  Token = iota // as a password before the host
	TokenInHeader                // in a header
	TokenAsPassword              // as a password that it asks for
)

// Address is the address of the pages.
const Address = "https://github.com/caddy-notify/caddy-notify/blob/main/docs/"

// Part is a part of a text: plain text, code, or a link to a page of the documentation.
type Part struct {
	Text string
	Code bool
	Page string // address of the page, relative to the documentation; "" for no link
}

// ExampleAddress is the address of a key in the documentation.
const ExampleAddress = "https://alerts.example.com/notify/ops"

// Programs returns the programs of the page.
var Programs = sync.OnceValue(func() (all []Program) {
	tokens := tokenPlaces()
	list, _, _ := strings.Cut(programList, "\n## Alertmanager")
	_, list, _ = strings.Cut(list, "\n## Programs")
	for line := range strings.Lines(list) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| program ") {
			continue
		}
		p := Program{Name: strings.TrimSpace(cells[0]), Where: parts(cells[1]), Enter: parts(cells[2])}
		for name := range strings.SplitSeq(p.Name, ", ") {
			p.Token = max(p.Token, tokens[name])
		}
		all = append(all, p)
	}
	return all
})

// tokenPlaces returns where programs can put a token, by their names.
func tokenPlaces() map[string]Token {
	_, list, _ := strings.Cut(programList, "\n## Who may post")
	kinds := map[string]Token{"user and password": TokenAsPassword, "`Authorization: Bearer TOKEN`": TokenInHeader}
	places := map[string]Token{}
	for line := range strings.Lines(list) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 || kinds[cells[1]] == TokenInAddress {
			continue
		}
		for name := range strings.SplitSeq(strings.TrimSpace(cells[0]), ", ") {
			places[name] = max(places[name], kinds[cells[1]])
		}
	}
	return places
}

// markup matches code and links.
var markup = regexp.MustCompile("`([^`]+)`" + `|\[([^\]]+)\]\(([^)]+)\)`)

// parts divides a text with Markdown.
func parts(text string) (out []Part) {
	add := func(p Part) {
		if p.Text != "" {
			out = append(out, p)
		}
	}
	text = strings.TrimSpace(text)
	at := 0
	for _, m := range markup.FindAllStringSubmatchIndex(text, -1) {
		add(Part{Text: text[at:m[0]]})
		if at = m[1]; m[2] >= 0 {
			add(Part{Text: text[m[2]:m[3]], Code: true})
			continue
		}
		page := text[m[6]:m[7]]
		if strings.HasPrefix(page, "#") {
			page = "program-list.md" + page
		}
		add(Part{Text: text[m[4]:m[5]], Page: page})
	}
	add(Part{Text: text[at:]})
	return out
}

// FindPrograms returns the programs that a text names, of which each name has a word that begins with
// it. Case, spaces and punctuation do not count.
func FindPrograms(text string) (found []Program) {
	word := letters(text)
	for _, p := range Programs() {
		words := strings.FieldsFunc(p.Name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		for i := range words {
			if len(word) >= 3 && strings.HasPrefix(letters(strings.Join(words[i:], "")), word) {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// letters returns the letters and digits of a text in lower case.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
