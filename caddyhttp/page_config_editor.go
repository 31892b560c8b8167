package caddyhttp

import (
	_ "embed"
	"strings"
)

// editorJS checks the configuration in the editor while it is written.
//
//go:embed page_config_editor.js
var editorJS string

// setDraft shows a configuration that is not saved.
func (p *configPageData) setDraft(d *draft) {
	p.Draft, p.Text, p.Format = true, d.Text, d.Format
	p.NotSaved, p.URLs = d.problem, d.urls
	p.Mistakes, p.Warnings = newCheckedMistakes(d.mistakes), newCheckedMistakes(d.warnings)
}

// maxEditorLines bounds the height of the editor.
const maxEditorLines = 1000

// editorLine is a line number beside the editor.
type editorLine struct {
	Number int
	Class  string // "" for a line without a mistake
}

// Lines returns the line numbers beside the editor, with one to spare.
func (p configPageData) Lines() []editorLine {
	n := max(12, strings.Count(strings.TrimSuffix(p.Text, "\n"), "\n")+2)
	lines := make([]editorLine, min(n, maxEditorLines))
	for i := range lines {
		lines[i].Number = i + 1
	}
	mark := func(all []checkedMistake, class string) {
		for _, m := range all {
			if m.Line > 0 && m.Line <= len(lines) {
				lines[m.Line-1].Class = class
			}
		}
	}
	mark(p.Warnings, "warned")
	mark(p.Mistakes, "wrong")
	return lines
}
