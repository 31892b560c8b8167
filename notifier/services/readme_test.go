package services

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestReadme compares README.md with the descriptions of the services. If
// UPDATE_GOLDEN is set, it writes the file instead.
func TestReadme(t *testing.T) {
	want := readme(notifier.Services())
	if servicetest.Update() {
		if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("README.md")
	if err != nil || string(got) != want {
		t.Error("README.md is out of date; run UPDATE_GOLDEN=1 go test ./notifier/services -run TestReadme", err)
	}
}

func readme(all []notifier.ServiceInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Services

%d services and how their notification URLs are written. This file is made from the descriptions in the code;
a test fails when it is stale.

- In a URL, brackets enclose what may be left out, %s is a place to fill in and %s takes any number of
  path segments. %s stands for the schemes with and without the letter s at the end: with it, the connection is TLS.
- What a URL has a place for may come from the query as well (%s), and everything else comes from there:
  %s. Characters that mean something in a URL are percent-encoded: an @ in a password is %s.
  A # is %s, except in front of a word, where it may stand as it is: %s.
- A parameter in **bold** is required. One with a 🔒 is a secret and shown nowhere.

`, len(all), "`{name}`", "`{name...}`", "`[s]`", "`?token=…`", "`?priority=high&format=markdown`", "`%40`", "`%23`", "`/#room`")

	b.WriteString("## Parameters that every service has\n\n")
	writeParams(&b, all[0].Params, func(p notifier.ParamInfo) bool { return p.Common })

	b.WriteString("## Index\n\n| service | schemes | files | longest message |\n| --- | --- | --- | --- |\n")
	for _, s := range all {
		files := ""
		if s.Attachments {
			files = "yes"
		}
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s | %s |\n", s.Name, anchor(s.Name), strings.Join(s.Schemes, "` `"), files, limit(s, s.MaxBody))
	}
	for _, s := range all {
		fmt.Fprintf(&b, "\n## %s\n\n<%s>\n\n```\n", s.Name, s.Site)
		for i, u := range s.URLs {
			fmt.Fprintf(&b, "%s\n    e.g. %s\n", u, s.Examples[i])
		}
		for _, u := range s.Natives {
			fmt.Fprintf(&b, "%s\n", u)
		}
		title := "a title of " + limit(s, s.MaxTitle)
		if s.MaxTitle <= 0 {
			title = "no title of its own (it becomes the beginning of the text)"
		}
		files := "no files"
		if s.Attachments {
			files = "files"
		}
		fmt.Fprintf(&b, "```\n\nTakes %s, a text of %s in %s, and %s.\n\n", title, limit(s, s.MaxBody), s.Format, files)
		writeParams(&b, s.Params, func(p notifier.ParamInfo) bool { return !p.Common || p.Name == "format" && p.Default != "text" })
	}
	return b.String()
}

func limit(s notifier.ServiceInfo, n int) string {
	if n <= 0 {
		return "any length"
	}
	return fmt.Sprintf("%d %s", n, s.Unit)
}

// anchor is what GitHub makes of a heading.
func anchor(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
			return r
		}
		return -1
	}, strings.ToLower(name))
}

func writeParams(b *strings.Builder, params []notifier.ParamInfo, show func(notifier.ParamInfo) bool) {
	params = slices.DeleteFunc(slices.Clone(params), func(p notifier.ParamInfo) bool { return !show(p) })
	if len(params) == 0 {
		return
	}
	b.WriteString("| parameter | what it is | values | default |\n| --- | --- | --- | --- |\n")
	for _, p := range params {
		name := "`" + p.Name + "`"
		if p.Kind == notifier.KindMap {
			name = "`" + p.Prefix + "…`"
		}
		if p.Required {
			name = "**" + name + "**"
		}
		for _, a := range p.Aliases {
			name += ", `" + a + "`"
		}
		if p.Secret && p.Kind != notifier.KindMap {
			name += " 🔒"
		}
		values := string(p.Kind)
		switch {
		case p.Kind == notifier.KindString:
			values = "text"
		case p.Kind == notifier.KindMap:
			values = "`" + p.Prefix + "name=value`"
		case p.Kind == notifier.KindBool:
			values = "yes, no"
		case len(p.Choices) > 0:
			values = strings.Join(p.Choices, ", ")
		case p.Min != nil && p.Max != nil:
			values = fmt.Sprintf("%v to %v", *p.Min, *p.Max)
		case p.Min != nil:
			values = fmt.Sprintf("%v or more", *p.Min)
		}
		for _, part := range p.Parts {
			values += "; `" + strings.Replace(part, ": ", "…`: ", 1)
		}
		doc := strings.ReplaceAll(p.Doc, "|", `\|`)
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, doc, strings.ReplaceAll(values, "|", `\|`), p.Default)
	}
	b.WriteString("\n")
}
