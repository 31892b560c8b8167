package folder

import "strings"

// CaddyfileWriter writes the indented lines of a Caddyfile. The zero value is ready to use.
type CaddyfileWriter struct {
	text  strings.Builder
	depth int
}

// String returns what was written.
func (w *CaddyfileWriter) String() string { return w.text.String() }

// Line writes a line of any text.
func (w *CaddyfileWriter) Line(text string) {
	if text != "" {
		text = strings.Repeat("\t", w.depth) + text
	}
	w.text.WriteString(text + "\n")
}

// Comment writes a comment, which may have several lines.
func (w *CaddyfileWriter) Comment(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		w.Line(strings.TrimRight("# "+line, " "))
	}
}

// Open begins a block with what stands before its brace, which may be nothing.
func (w *CaddyfileWriter) Open(text string) {
	w.Line(strings.TrimSpace(text + " {"))
	w.depth++
}

// Close ends the block.
func (w *CaddyfileWriter) Close() {
	w.depth--
	w.Line("}")
}
