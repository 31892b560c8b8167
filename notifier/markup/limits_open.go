package markup

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxOpenElements is the maximum number of elements that are closed at a cut and opened
// again after it.
const maxOpenElements = 16

// openAt returns what closes the markup that is open at the end of a part, and what opens
// it again before rest, which follows the part. midLine means that the cut is within a line.
func (c cutter) openAt(part, rest string, midLine bool) (closing, opening string) {
	switch c.markup {
	case HTML:
		return openElements(part)
	case Markdown:
		return openMarkdown(part, rest, midLine)
	}
	return "", ""
}

// openElement is an element that has no end in a part.
type openElement struct {
	name, tag string
	items     int // of a list
}

var voidElements = []string{"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}

// openElements returns the end tags and the start tags of the elements of HTML that have no
// end in part. A list goes on with its numbers; the rest of an item has no number.
func openElements(part string) (closing, opening string) {
	open := make([]openElement, 0, maxOpenElements+1)
	for {
		i := strings.IndexByte(part, '<')
		if i < 0 {
			break
		}
		part = part[i:]
		n := tagLength(part)
		if n == 0 {
			part = part[1:]
			continue
		}
		tag := part[:n]
		part = part[n:]
		name := strings.ToLower(tagName(tag))
		if strings.HasPrefix(tag, "</") {
			for k := range slices.Backward(open) {
				if open[k].name == name {
					open = open[:k]
					break
				}
			}
			continue
		}
		if name == "" || slices.Contains(voidElements, name) {
			continue
		}
		last := len(open) - 1
		if last >= 0 && open[last].name == name && (name == "p" || name == "li") {
			open = open[:last]
			last--
		}
		if last >= 0 && name == "li" {
			open[last].items++
		}
		if open = append(open, openElement{name: name, tag: tag}); len(open) > maxOpenElements {
			return "", ""
		}
	}
	for _, e := range open {
		closing = "</" + e.name + ">" + closing
		switch e.name {
		case "li":
		case "ol":
			first := 1
			if _, start, ok := strings.Cut(e.tag, "start="); ok {
				start = strings.TrimLeft(start, `"' `)
				first, _ = strconv.Atoi(start[:len(start)-len(strings.TrimLeft(start, "0123456789"))])
			}
			opening += `<ol start="` + strconv.Itoa(first+e.items) + `">`
		default:
			opening += e.tag
		}
	}
	return closing, opening
}

// tagName returns the name in a tag.
func tagName(tag string) string {
	tag = strings.TrimPrefix(tag[1:], "/")
	return tag[:len(tag)-len(strings.TrimLeft(tag, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"))]
}

// openMarkdown is openElements for Markdown: code, emphasis, quotations and tables.
func openMarkdown(part, rest string, midLine bool) (closing, opening string) {
	var (
		code, info  string   // the fence of open code, and what follows it
		signs       []string // of emphasis
		quote       string   // before the text of the line
		toEnd       bool     // the quotation ends with the text
		table, line string   // the head of a table, and the line before
		start       int      // of the line
	)
	paragraph, _, _ := strings.Cut(rest, "\n\n")
	for i := 0; i < len(part); {
		if i == 0 || part[i-1] == '\n' {
			now, _, _ := strings.Cut(part[i:], "\n")
			if code == "" {
				quote = now[:len(now)-len(strings.TrimLeft(now, "> "))]
				if !strings.Contains(quote, ">") {
					quote = ""
				}
				toEnd = toEnd || strings.HasPrefix(now, ">>> ")
				switch {
				case strings.TrimSpace(now) == "":
					signs, table = nil, ""
				case !strings.Contains(now, "|"):
					table = ""
				case strings.Contains(now, "-") && strings.Contains(line, "|") && chatRow.MatchString(now):
					table = line + "\n" + now + "\n"
				}
			}
			line, start = now, i
		}
		n := 1
		switch ch := part[i]; {
		case ch == '`', ch == '~' && (code != "" || strings.HasPrefix(part[i:], "~~~") && strings.Trim(part[start:i], "> \t") == ""):
			n = len(part[i:]) - len(strings.TrimLeft(part[i:], part[i:i+1]))
			run := part[i : i+n]
			switch {
			case code != "" && strings.HasPrefix(run, code):
				code = ""
			case code != "":
			case n >= len(fence):
				code = run
				info, _, _ = strings.Cut(part[i+n:], "\n")
				if strings.ContainsAny(info, " \t`") || !strings.Contains(part[i+n:], "\n") {
					info = ""
				}
			default:
				scope, _, _ := strings.Cut(part[i+n:], "\n\n")
				if end := strings.Index(scope, run); end >= 0 {
					n += end + len(run)
				} else if len(scope) == len(part[i+n:]) && strings.Contains(paragraph, run) {
					return run + reversed(signs), strings.Join(signs, "") + run
				}
			}
		case code != "":
		case ch == '\\':
			n = 2
		case ch == '[', ch == '<', ch == '!':
			n = max(atomLength(part[i:min(len(part), i+maxAtom)]), 1)
		case ch == 'h' || ch == 'H':
			n = max(bareLength(part[i:min(len(part), i+maxAtom)], emphasisSigns), 1)
		case ch == '*', ch == '_', ch == '~', ch == '|' && table == "":
			n = len(part[i:]) - len(strings.TrimLeft(part[i:], part[i:i+1]))
			signs = openSigns(signs, part, i, n)
		}
		i += n
	}
	switch {
	case code != "":
		return "\n" + quote + code, quote + code + info + "\n"
	case table != "" && !midLine && strings.Contains(strings.SplitN(rest, "\n", 2)[0], "|"):
		return "", table
	}
	signs = slices.DeleteFunc(signs, func(s string) bool { return !strings.Contains(paragraph, s) })
	switch {
	case toEnd:
		opening = ">>> "
	case midLine:
		opening = quote
	case quote != "":
		return reversed(signs), ""
	}
	return reversed(signs), opening + strings.Join(signs, "")
}

// openSigns returns the signs of emphasis that are open after the run of n equal signs at i.
func openSigns(signs []string, text string, i, n int) []string {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i+n:])
	opens := i+n < len(text) && !unicode.IsSpace(after)
	closes := i > 0 && !unicode.IsSpace(before)
	if text[i] == '_' || text[i] == '|' { // a word may be in a spoiler, but has none in it
		opens, closes = opens && !isWord(before), closes && !isWord(after)
	}
	if n > 3 || strings.IndexByte("~|", text[i]) >= 0 && n != 2 {
		return signs
	}
	sign := text[i : i+n]
	if closes {
		for k := range slices.Backward(signs) {
			if signs[k] == sign {
				return signs[:k]
			}
		}
	}
	if opens && len(signs) < maxOpenElements {
		signs = append(signs, sign)
	}
	return signs
}

// reversed returns signs in the order in which they close.
func reversed(signs []string) string {
	var b strings.Builder
	for _, s := range slices.Backward(signs) {
		b.WriteString(s)
	}
	return b.String()
}

// isBlank reports whether a part that begins with opened markup has nothing in it.
func (c cutter) isBlank(part string) bool {
	if c.markup != HTML {
		return strings.Trim(part, "`~*_>| \t\r\n") == ""
	}
	for part != "" {
		switch {
		case part[0] == '<':
			n := tagLength(part)
			if n == 0 || strings.EqualFold(tagName(part), "img") {
				return false
			}
			part = part[n:]
		case strings.IndexByte(" \t\r\n", part[0]) >= 0:
			part = part[1:]
		default:
			return false
		}
	}
	return true
}
