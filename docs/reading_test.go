package docs_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestNewcomersPath checks that what a newcomer reads stays short: the README, and the
// pages about the phone, programs, the queue and security.
func TestNewcomersPath(t *testing.T) {
	const limit = 5000
	words := 0
	for _, name := range []string{"README.md", "docs/phone.md", "docs/programs.md", "docs/durable-delivery.md", "docs/security.md"} {
		words += len(strings.Fields(readFile(t, name)))
	}
	if words >= limit {
		t.Errorf("the newcomer's path has %d words, want fewer than %d; move details to the pages that it leads to", words, limit)
	}
}

// TestLength checks that the pages stay short: who adds something says it once, and leaves out what pages of
// the console, commands and errors say themselves. The list of services, which is generated, does not count.
func TestLength(t *testing.T) {
	const limit = 68_000
	words := 0
	for _, p := range userPages(t) {
		if strings.HasPrefix(p.path, "docs/") && p.path != "docs/services.md" {
			words += len(strings.Fields(readFile(t, p.path)))
		}
	}
	if words > limit {
		t.Errorf("the pages have %d words, want at most %d; shorten something, or say it in one place", words, limit)
	}
	if n, most := len(strings.Fields(readFile(t, "README.md"))), 800; n > most {
		t.Errorf("the README has %d words, want at most %d", n, most)
	}
}

// TestFirstCommands checks that the README begins with the command that runs the example and
// the one that passes the tests, and leads to the first message with one more.
func TestFirstCommands(t *testing.T) {
	var commands []block
	for _, b := range readPage(t, "README.md").blocks {
		if b.language == "sh" {
			commands = append(commands, b)
		}
	}
	for i, want := range []string{"./xcaddy.sh run ", "go test ./...", "curl "} {
		if text := commands[i].text; !strings.HasPrefix(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: the README begins with %q, want one command that begins with %q", commands[i], text, want)
		}
	}
}

// TestIndex checks that the index begins with what people ask.
func TestIndex(t *testing.T) {
	text := readFile(t, "docs/README.md")
	for _, file := range []string{
		"phone.md", "programs.md", "security.md", "troubleshooting.md",
		"quiet.md", "apprise.md", "move.md", "install.md",
	} {
		i := strings.Index(text, "]("+file)
		if i < 0 {
			t.Fatalf("the index has no link to %s, or not in the order of the questions", file)
		}
		text = text[i:]
	}
}

// lists are pages that are only looked up: the index, and lists in which nothing can go wrong.
var lists = []string{"docs/README.md", "docs/deviations.md"}

// maxLead is how many lines of text a page may have before the shortest thing that works.
const maxLead = 5

// TestShapeOfPages checks that every page begins with something to type, a table or steps, and ends with
// what can go wrong: what one sees, why, and what to do.
func TestShapeOfPages(t *testing.T) {
	for _, p := range userPages(t) {
		if slices.Contains(lists, p.path) {
			continue
		}
		text := readFile(t, p.path)
		if n := lead(text); n > maxLead {
			t.Errorf("%s: the first block, table or list of steps comes after %d lines; begin with the shortest thing that works", p.path, n)
		}
		_, end, ok := cutLast(text, "\n## ")
		if p.path == "README.md" { // the licence follows
			text, _, _ = cutLast(text, "\n## ")
			_, end, ok = cutLast(text, "\n## ")
		}
		if p.path == "docs/troubleshooting.md" {
			ok = strings.Count(text, "| you see |") > 3 // the whole page
		} else if ok {
			ok = strings.HasPrefix(end, "What can go wrong\n") && regexp.MustCompile(`(?m)^\| you see \| why \| what to do \|$`).MatchString(end)
		}
		if !ok {
			t.Errorf(`%s: the last section is not "What can go wrong" with a table: you see, why, what to do`, p.path)
		}
	}
}

// lead returns the number of lines with text between the title and the first block, table or step.
func lead(text string) (n int) {
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "```"), strings.HasPrefix(line, "| "), strings.HasPrefix(line, "1. "):
			return n
		case line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "- ["):
			n++
		}
	}
	return n
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// TestURLsInTables parses the notification URLs in the last columns of the tables of the pages that lead
// people here from other programs and providers.
func TestURLsInTables(t *testing.T) {
	cell := regexp.MustCompile("(?m)^\\|.*\\| `([a-z0-9]+://[^`]+)`[^|`]*\\|")
	n := 0
	for _, name := range []string{"docs/move.md", "docs/mail-providers.md"} {
		for _, m := range cell.FindAllStringSubmatch(readPage(t, name).prose, -1) {
			if strings.Contains(m[1], "alerts.example.com/notify/") {
				continue // an address of the gateway
			}
			n++
			if _, err := notifier.Parse(m[1], nil); err != nil {
				t.Errorf("%s: %s: %v", path.Base(name), m[1], err)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d URLs were found", n)
	}
}

// TestExampleURLs parses the notification URLs that stand in the text of pages, or alone in a line of a
// block marked text. One with a place to fill in, such as TOKEN, {env.TOKEN} or …, is the form of a URL and
// not an example.
func TestExampleURLs(t *testing.T) {
	address := regexp.MustCompile(`^[a-z0-9]+://\S+$`)
	form := regexp.MustCompile(`[{}<>…$|]|\b[A-Z][A-Z_]+\b|^[a-z0-9]+://$`)
	n := 0
	for _, p := range userPages(t) {
		if p.path == "docs/services.md" {
			continue // it is made from what parses
		}
		var urls []string
		for _, m := range codeSpan.FindAllStringSubmatch(p.prose, -1) {
			urls = append(urls, m[1])
		}
		for _, b := range p.blocks {
			if b.language == "text" {
				urls = append(urls, strings.Split(b.text, "\n")...)
			}
		}
		for _, u := range urls {
			u = strings.TrimSpace(u)
			if !address.MatchString(u) || form.MatchString(u) || strings.HasPrefix(u, "http") || strings.Contains(u, "alerts.example.com/") {
				continue
			}
			n++
			d, err := notifier.Parse(u, nil)
			if err != nil {
				t.Errorf("%s: %s: %v", p.path, u, err)
			} else if w := d.Warnings(); len(w) > 0 { // in a Caddyfile, most of them are errors
				t.Errorf("%s: %s: %s", p.path, u, w[0])
			}
		}
	}
	if n < 35 {
		t.Errorf("only %d URLs were found", n)
	}
}

// TestQuotedErrors reports errors that a page quotes in a column "you see" and that no program returns.
// TestTroubleshooting checks the errors in docs/troubleshooting.md.
func TestQuotedErrors(t *testing.T) {
	source := programText(t)
	for _, p := range userPages(t) {
		if p.path == "docs/troubleshooting.md" {
			continue
		}
		for _, text := range quotedIn(p) {
			text = strings.TrimSuffix(text, "…")
			if strings.Contains(text, " ") && !slices.Contains(errorsOfOthers, text) &&
				!matchesQuote(source, text) && !strings.HasPrefix(text, "caddy ") {
				t.Errorf("%s: no error has the text: %s", p.path, text)
			}
		}
	}
}
