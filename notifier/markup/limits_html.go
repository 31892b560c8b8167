package markup

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// voidElements have no end tag.
var voidElements = []atom.Atom{
	atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img,
	atom.Input, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track,
	atom.Wbr,
}

func (o *outline) nextHTML() piece {
	s := o.text[o.pos:]
	switch s[0] {
	case '<':
		if n := o.tagLength(s); n > 0 {
			return o.tag(s[:n])
		}
	case '&':
		if n := referenceLength(s); n > 0 && n <= o.room {
			return piece{end: o.pos + n}
		}
	}
	return o.character()
}

// tagLength returns the length of the tag, the comment or the element without text that s
// begins with.
func (o *outline) tagLength(s string) int {
	for i, hidden := range [...]struct{ start, end string }{{"<!--", "-->"}, {"<style", "</style>"}} {
		if len(s) < len(hidden.start) || !strings.EqualFold(s[:len(hidden.start)], hidden.start) || o.absent[i] {
			continue
		}
		if n := strings.Index(s, hidden.end); n >= 0 {
			return n + len(hidden.end)
		}
		o.absent[i] = true
	}
	return tagLength(s)
}

func (o *outline) tag(tag string) piece {
	p := piece{kind: nothing, end: o.pos + len(tag)}
	name := tagName(tag)
	a := atom.Lookup([]byte(strings.ToLower(name)))
	rank := 0
	switch {
	case a == atom.Br, a == atom.Li, a == atom.Tr, a == atom.Dt, a == atom.Dd:
		rank = afterLine
	case a == atom.Td, a == atom.Th:
	case endsParagraph(a):
		rank = afterBlock
	}
	switch {
	case name == "" || a == atom.Style && strings.HasSuffix(tag, "</style>"):
	case strings.HasPrefix(tag, "</"):
		p.kind, p.node.name, p.after = closing, name, rank
		if isHeading(a) { // it belongs to the following text
			p.after = beforeMore
		}
	case slices.Contains(voidElements, a):
		p.after = rank
		if a == atom.Img || a == atom.Hr || a == atom.Input || a == atom.Embed {
			p.kind = letter
		}
	default:
		p.kind, p.before = opening, rank
		p.node = node{name: name, open: tag, close: "</" + name + ">", code: a == atom.Pre}
		if a == atom.Ol {
			p.node.number = 1
			if n, err := strconv.Atoi(attributeOf(tag, "start")); err == nil {
				p.node.number = n
			}
		}
	}
	return p
}

// shutBefore closes the elements that end where an element with the name begins.
func (o *outline) shutBefore(name string) {
	a := atom.Lookup([]byte(strings.ToLower(name)))
	if endsParagraph(a) {
		o.shutElement([]atom.Atom{atom.P}, atom.Td, atom.Th, atom.Li, atom.Div, atom.Blockquote)
	}
	switch a {
	case atom.Li:
		o.shutElement([]atom.Atom{atom.Li}, atom.Ul, atom.Ol)
	case atom.Dt, atom.Dd:
		o.shutElement([]atom.Atom{atom.Dt, atom.Dd}, atom.Dl)
	case atom.Td, atom.Th:
		o.shutElement([]atom.Atom{atom.Td, atom.Th}, atom.Tr, atom.Table)
	case atom.Tr:
		o.shutElement([]atom.Atom{atom.Tr}, atom.Table, atom.Tbody, atom.Thead)
	}
}

// count counts an item of a list.
func (o *outline) count(n node) {
	if last := len(o.open) - 1; last >= 0 && strings.EqualFold(n.name, "li") {
		if value, err := strconv.Atoi(attributeOf(n.open, "value")); err == nil {
			o.open[last].number = value
		}
		o.open[last].number++
	}
}

// shutElement closes the innermost element that is one of names, unless it is outside of
// one of within.
func (o *outline) shutElement(names []atom.Atom, within ...atom.Atom) {
	for i, n := range slices.Backward(o.open) {
		a := atom.Lookup([]byte(strings.ToLower(n.name)))
		switch {
		case slices.Contains(names, a):
			o.shut(i)
			return
		case slices.Contains(within, a):
			return
		}
	}
}

// attributePattern matches an attribute of a tag and its value.
var attributePattern = lazyregexp.New(`(?i)\s(start|value|style)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))`)

// attributeOf returns the value of an attribute that attributePattern matches.
func attributeOf(tag, name string) string {
	if !strings.Contains(tag, "=") {
		return ""
	}
	for _, m := range attributePattern.FindAllStringSubmatch(tag, -1) {
		if strings.EqualFold(m[1], name) {
			return strings.TrimSpace(m[2] + m[3] + m[4])
		}
	}
	return ""
}

// reopenHTML returns the start tags of the open elements. A list continues its numbers. The rest of
// an item is an item, because text cannot stand between items, but has no mark if styles are shown.
func (o *outline) reopenHTML(bare bool) string {
	var b strings.Builder
	for i, n := range o.open {
		tag, name := n.open, strings.ToLower(n.name)
		if bare && name != "a" {
			tag = "<" + n.name + ">"
		}
		switch {
		case name == "ol":
			number := n.number
			if i+1 < len(o.open) && strings.EqualFold(o.open[i+1].name, "li") {
				number--
			}
			tag = tag[:len("<ol")] + ` start="` + strconv.Itoa(number) + `"` + withoutStart(tag[len("<ol"):])
		case name == "li" && !bare && attributeOf(tag, "style") == "":
			tag = tag[:len("<li")] + ` style="list-style:none"` + tag[len("<li"):]
		}
		b.WriteString(tag)
	}
	return b.String()
}

func withoutStart(attributes string) string {
	for _, m := range attributePattern.FindAllStringSubmatchIndex(attributes, -1) {
		if strings.EqualFold(attributes[m[2]:m[3]], "start") {
			return attributes[:m[0]] + attributes[m[1]:]
		}
	}
	return attributes
}

// withoutLong returns HTML without comments and tags that are longer than room, since they fit into
// no part. The name of such an element remains.
func withoutLong(text string, room int, unit Unit) string {
	if len(text) <= room {
		return text
	}
	o := outline{format: HTML}
	var b strings.Builder
	done := 0
	for i := strings.IndexByte(text, '<'); i >= 0 && i < len(text); {
		n := o.tagLength(text[i:])
		if n > room && unit.Length(text[i:i+n]) > room {
			b.WriteString(text[done:i])
			tag, name := text[i:i+n], tagName(text[i:i+n])
			if p := o.tag(tag); p.kind == opening && len(name) < room {
				b.WriteString("<" + name + ">")
			}
			done = i + n
		}
		i += max(n, 1)
		next := strings.IndexByte(text[i:], '<')
		if next < 0 {
			break
		}
		i += next
	}
	if done == 0 {
		return text
	}
	return b.String() + text[done:]
}
