package markup

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxParagraph is the maximum length of a text in which the end of emphasis or code is
	// looked for, in bytes.
	maxParagraph = 64 << 10

	maxRuns     = 64  // runs of signs in which the beginning of emphasis is looked for
	maxBrackets = 256 // brackets within each other
)

// paragraph is the state of the paragraph that an outline reads, or of the code between fences.
type paragraph struct {
	start, end int // in the text

	marks   []token
	heading bool
	table   string // the head of the table, if the paragraph is one
	rows    int    // where the rows of the table begin

	code struct { // the last code that a chat reads, with its line breaks
		start int
		node  node
	}
	next int // the first of marks after the current place

	runs     []signRun // while it is read
	brackets []openBracket
}

// token is a sign that opens or closes something.
type token struct {
	at, end int32 // in the text
	pair    int32 // the index of the sign that closes this one, or 0 if this one closes
	to      int32 // the end of the text that it opens
	whole   bool  // the text that it opens is divided only if it is longer than a part
}

// signRun is the rest of a run of equal signs of emphasis.
type signRun struct {
	at, n         int
	length        int // of the run
	opens, closes bool
}

// openBracket is the [ or ![ that may begin a link.
type openBracket struct{ at, end, runs int }

func (o *outline) nextMarkdown() piece {
	m := &o.paragraph
	if o.pos >= m.end {
		o.readParagraph(o.pos)
	}
	for m.next < len(m.marks) && int(m.marks[m.next].at) < o.pos {
		m.next++
	}
	if m.next == len(m.marks) || int(m.marks[m.next].at) > o.pos {
		if n := o.wholeLength(o.text[o.pos:m.end]); n > 0 && n <= o.room && !o.top().code {
			return piece{end: o.pos + n}
		}
		return o.character()
	}
	k := m.marks[m.next]
	p := piece{kind: closing, end: int(k.end)}
	if k.pair == 0 {
		if !slices.ContainsFunc(o.open, func(n node) bool { return n.end == p.end }) {
			return o.character()
		}
		if o.text[k.at] == '\n' {
			p.after = afterBlock
		}
		return p
	}
	if k.whole && o.unit.Length(o.text[k.at:k.to]) <= o.room {
		return piece{end: int(k.to)}
	}
	p.kind = opening
	p.node = node{open: o.text[k.at:k.end], close: o.text[k.pair:k.to]}
	if c := o.text[k.at]; o.pos == m.code.start {
		p.node = m.code.node
	} else {
		p.node.code = c == '`'
	}
	p.node.end = int(k.to)
	if o.keep || o.unit.Length(p.node.open+p.node.close) > o.room/2 || len(o.open) == maxOpenElements {
		return o.character()
	}
	return p
}

// wholeLength returns the length of the undivided piece that s begins with: an escape, a tag or a
// character reference.
func (o *outline) wholeLength(s string) int {
	switch s[0] {
	case '\\':
		if len(s) > 1 && isPunctuation(s[1]) {
			return 2
		}
	case '<':
		return tagLength(s[:min(len(s), maxAddress)])
	case '&':
		return referenceLength(s)
	}
	return 0
}

// readParagraph reads the lines that begin at start up to the end of their paragraph.
func (o *outline) readParagraph(start int) {
	m := &o.paragraph
	*m = paragraph{start: start, end: start, marks: m.marks[:0], runs: m.runs[:0], brackets: m.brackets[:0]}
	m.code.start = -1
	window := o.text[:min(len(o.text), start+maxParagraph)]
	if o.readFence(start, window) {
		return
	}
	quote := quotePrefix(o.text[start:])
	for first := ""; m.end < len(window); {
		line, _, _ := strings.Cut(window[m.end:], "\n")
		prefix := quotePrefix(line)
		rest := line[len(prefix):]
		if m.end > start && (prefix != "" && quote == "" || beginsBlock(rest) || chatItem.MatchString(rest) || fenceOf(rest) != "") {
			break
		}
		if m.table == "" && strings.Contains(first, "|") && strings.Contains(line, "-") &&
			strings.Contains(line, "|") && chatRow.MatchString(rest) {
			m.rows = min(m.end+len(line)+1, len(window))
			m.table = first + "\n" + line + "\n"
		}
		if m.end == start {
			o.toEnd = o.toEnd || strings.HasPrefix(line, ">>> ")
			m.heading = strings.HasPrefix(rest, "#") && beginsBlock(rest)
		}
		first = line
		m.end = min(m.end+len(line)+1, len(window))
		if m.heading || strings.TrimSpace(rest) == "" {
			break
		}
	}
	o.readInline(start)
}

// quotePrefix returns the signs of quotations that a line begins with.
func quotePrefix(line string) string {
	line = line[:min(len(line), maxPrefix)]
	prefix := line[:len(line)-len(strings.TrimLeft(line, "> "))]
	if !strings.Contains(prefix, ">") {
		return ""
	}
	return prefix
}

// fenceOf returns the fence that a line begins with, if it begins code.
func fenceOf(line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, sign := range [...]string{"`", "~"} {
		if strings.HasPrefix(line, strings.Repeat(sign, len(fence))) {
			rest := strings.TrimLeft(line, sign)
			info, _, more := strings.Cut(rest, "\n")
			if !more || strings.Contains(info, "`") {
				return ""
			}
			return line[:len(line)-len(rest)]
		}
	}
	return ""
}

// readFence reads the code between fences that begins at start, and reports whether there is
// some.
func (o *outline) readFence(start int, window string) bool {
	m := &o.paragraph
	prefix := quotePrefix(window[start:])
	inner := window[start+len(prefix):]
	prefix += inner[:len(inner)-len(strings.TrimLeft(inner, " \t"))]
	sign := fenceOf(inner)
	if sign == "" {
		return false
	}
	open := start + len(prefix) + len(sign)
	info, _, _ := strings.Cut(o.text[open:], "\n")
	if strings.ContainsAny(strings.TrimSpace(info), " \t") { // it is code
		info = ""
	} else {
		open += len(info) + 1
	}
	m.end = o.addCode(start, open, sign, node{open: prefix + sign + info + "\n", close: "\n" + prefix + sign, code: true})
	return true
}

// addCode adds the marks of code whose first one is between start and open, and returns where
// it ends. Without a second one, it ends with the text.
func (o *outline) addCode(start, open int, sign string, n node) int {
	m := &o.paragraph
	at, end := len(o.text), len(o.text)
	i := strings.Index(o.text[open:], sign)
	if sign[0] == '~' {
		i = strings.Index(o.text[open:], "\n"+sign)
	}
	if i >= 0 {
		at = open + i
		end = len(o.text) - len(strings.TrimLeft(strings.TrimPrefix(o.text[at:], "\n"), sign[:1]))
		if before := strings.TrimRight(o.text[open:at], " \t>"); strings.HasSuffix(before, "\n") {
			at = open + len(before) - 1
		}
	}
	m.code.start, m.code.node = start, n
	o.addPair(start, open, at, end, false)
	return end
}

// addPair adds the marks that open and close something.
func (o *outline) addPair(at, end, closeAt, closeEnd int, whole bool) {
	o.paragraph.marks = append(o.paragraph.marks,
		token{at: int32(at), end: int32(end), pair: int32(closeAt), to: int32(closeEnd), whole: whole},
		token{at: int32(closeAt), end: int32(closeEnd)})
}

// readInline finds the marks between start and the end of the paragraph.
func (o *outline) readInline(start int) {
	m := &o.paragraph
	var absent [8]bool // no code ends with so many backticks
	for i := start; i < m.end; {
		rest := o.text[i:m.end]
		n := 1
		switch c := rest[0]; c {
		case '\\', '<', '&':
			n = max(o.wholeLength(rest), 1)
		case '`':
			n = len(rest) - len(strings.TrimLeft(rest, "`"))
			sign := rest[:n]
			end := -1
			if !absent[min(n, len(absent)-1)] {
				end = codeEnd(rest, n)
			}
			switch {
			case end > 0:
				o.addPair(i, i+n, i+end-n, i+end, true)
				n = end
			case n >= len(fence) && strings.Contains(o.text[i+n:min(len(o.text), i+maxParagraph)], sign): // a chat's code
				m.end = o.addCode(i, i+n, sign, node{open: sign + "\n", close: "\n" + sign, code: true})
				n = m.end - i
			default:
				absent[min(n, len(absent)-1)] = true
			}
		case '!', '[':
			if n = 1; c == '!' {
				if !strings.HasPrefix(rest, "![") {
					break
				}
				n = 2
			}
			if len(m.brackets) == maxBrackets {
				m.brackets = append(m.brackets[:0], m.brackets[maxBrackets/2:]...)
			}
			m.brackets = append(m.brackets, openBracket{i, i + n, len(m.runs)})
		case ']':
			n = o.readLink(i, rest)
		case 'h', 'H':
			n = max(bareLength(rest[:min(len(rest), maxAddress)], emphasisSigns), 1)
		case '*', '_', '~', '|':
			n = len(rest) - len(strings.TrimLeft(rest, rest[:1]))
			o.addRun(i, n)
		}
		i += n
	}
	o.pairSigns(0)
	slices.SortFunc(m.marks, func(a, b token) int { return cmp.Compare(a.at, b.at) })
}

// codeEnd returns the index after the code that s begins with between runs of n backticks,
// or 0.
func codeEnd(s string, n int) int {
	for i := n; ; {
		at := strings.IndexByte(s[i:], '`')
		if at < 0 {
			return 0
		}
		i += at
		length := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		i += length
		if length == n {
			return i
		}
	}
}

// readLink reads the ] that rest begins with, and returns how many bytes it takes: the ] alone,
// or also the target of the link or picture that it ends.
func (o *outline) readLink(i int, rest string) int {
	m := &o.paragraph
	last := len(m.brackets) - 1
	if last < 0 {
		return 1
	}
	b := m.brackets[last]
	m.brackets = m.brackets[:last]
	n := targetLength(rest[1:])
	if n == 0 {
		return 1
	}
	n++
	o.pairSigns(b.runs) // emphasis in the text ends there
	if b.end-b.at == 1 {
		m.brackets = slices.DeleteFunc(m.brackets, func(b openBracket) bool { return b.end-b.at == 1 }) // a link has no link in it
	}
	o.addPair(b.at, b.end, i, i+n, true)
	return n
}

// addRun adds the run of n signs of emphasis at i.
func (o *outline) addRun(i, n int) {
	m := &o.paragraph
	sign := o.text[i]
	if strings.IndexByte("~|", sign) >= 0 && n != 2 || sign == '|' && m.table != "" {
		return
	}
	before, _ := utf8.DecodeLastRuneInString(o.text[:i])
	after, _ := utf8.DecodeRuneInString(o.text[i+n:])
	if i == 0 {
		before = '\n'
	}
	if i+n == len(o.text) {
		after = '\n'
	}
	isPunct := func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }
	opens := !unicode.IsSpace(after) && (!isPunct(after) || unicode.IsSpace(before) || isPunct(before))
	closes := !unicode.IsSpace(before) && (!isPunct(before) || unicode.IsSpace(after) || isPunct(after))
	switch sign {
	case '_':
		opens, closes = opens && (!closes || isPunct(before)), closes && (!opens || isPunct(after))
	case '|': // a word may be in a spoiler, but has none in it
		opens, closes = !unicode.IsSpace(after) && !isWord(before), !unicode.IsSpace(before) && !isWord(after)
	}
	if opens || closes {
		m.runs = append(m.runs, signRun{i, n, n, opens, closes})
	}
}

// pairSigns adds the marks of the emphasis whose signs are among the runs from the one with
// the index first, and removes these. It does what CommonMark says.
func (o *outline) pairSigns(first int) {
	m := &o.paragraph
	for k := first; k < len(m.runs); k++ {
		for m.runs[k].closes && m.runs[k].n > 0 {
			i := o.opener(first, k)
			if i < 0 {
				break
			}
			from, to := &m.runs[i], &m.runs[k]
			n := 1
			if from.n >= 2 && to.n >= 2 {
				n = 2
			}
			at, end := from.at+from.n-n, to.at+n
			o.addPair(at, at+n, to.at, end, false)
			from.n -= n
			to.at, to.n = end, to.n-n
			for between := i + 1; between < k; between++ {
				m.runs[between].n = 0
			}
		}
	}
	m.runs = m.runs[:first]
}

// opener returns the index of the run that the one with the index k closes, or -1.
func (o *outline) opener(first, k int) int {
	m := &o.paragraph
	to := m.runs[k]
	for i := k - 1; i >= max(first, k-maxRuns); i-- {
		from := m.runs[i]
		if from.n == 0 || !from.opens || o.text[from.at] != o.text[to.at] {
			continue
		}
		if (from.closes || to.opens) && (from.length+to.length)%3 == 0 && (from.length%3 != 0 || to.length%3 != 0) {
			continue
		}
		return i
	}
	return -1
}

// reopenMarkdown returns what opens the nodes again, with the signs of the quotation and the
// head of the table.
func (o *outline) reopenMarkdown() string {
	var b strings.Builder
	m := &o.paragraph
	midLine := o.isMidLine()
	switch {
	case o.format != Markdown || o.keep:
		return ""
	case o.toEnd && o.pos > 0:
		b.WriteString(">>> ")
	case midLine && !o.top().code:
		b.WriteString(o.linePrefix())
	case m.table != "" && m.rows <= o.pos && o.pos < m.end && !midLine:
		b.WriteString(m.table)
	}
	for _, n := range o.open {
		b.WriteString(n.open)
	}
	return b.String()
}

// linePrefix returns what begins the line at o.pos.
func (o *outline) linePrefix() string {
	start := min(o.paragraph.start, o.pos)
	line := o.text[start+strings.LastIndexByte(o.text[start:o.pos], '\n')+1:]
	prefix := quotePrefix(line)
	if o.paragraph.heading {
		rest := line[len(prefix):]
		prefix += rest[:len(rest)-len(strings.TrimLeft(rest, "#"))] + " "
	}
	return prefix
}
