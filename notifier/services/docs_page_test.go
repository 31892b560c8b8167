package services

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestPage compares docs/services.md with the descriptions of the services.
func TestPage(t *testing.T) {
	golden.Check(t, "../../docs/services.md", page(notifier.Services()))
}

// TestNumberOfServices checks that the README has the number of services wherever
// it has one.
func TestNumberOfServices(t *testing.T) {
	const file = "../../README.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`\b\d+( services\b)`)
	if !number.Match(text) {
		t.Fatal("the README has no number of services")
	}
	golden.Check(t, file, number.ReplaceAllString(string(text), fmt.Sprint(len(notifier.Services()))+"$1"))
}

func page(all []notifier.ServiceInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Services

A destination is a URL. Put it into a key:

`+"```caddyfile"+`
key me {
	url ntfys://ntfy.sh/{env.NTFY_TOPIC}
}
`+"```"+`

Try one without sending anything: `+"`caddy notify check URL`"+`. There are %d services:

- [What most people need](#what-most-people-need)
- [Services by group](#services-by-group)
- [How to read the URLs](#how-to-read-the-urls)
- [Parameters of every service](#parameters-of-every-service)
- [Index](#index): incidents, files and limits of each
- [What can go wrong](#what-can-go-wrong)

For each there is an example, where its parts are found, all forms of the URL, and the parameters. `+
		"`caddy notify services NAME`"+` prints the same, and
`+"`caddy notify services WORDS`"+` searches.

`, len(all))
	writeCommon(&b, all)
	writeGroups(&b, all)
	b.WriteString("## How to read the URLs\n\n" +
		"| in a URL | means |\n| --- | --- |\n" +
		"| `{name}` | the place of a parameter |\n" +
		"| `{name...}` | any number of path segments |\n" +
		"| `[…]` | an optional part |\n" +
		"| `gotify[s]://` | `gotify://`, or `gotifys://` for TLS |\n" +
		"| `a\\|b://` | two schemes with the same meaning |\n\n" +
		"A parameter with a place in the URL can be in the query instead: `?token=…`. " +
		"All others are in the query: `?priority=high&format=markdown`.\n" +
		"Percent-encode characters that have a meaning in URLs: an `@` in a password is `%40`, " +
		"a `/` is `%2F`. A `#` in front of a word can stay: `/#room`.\n" +
		"`?user=` and `?pass=` or `?password=` set what is before the `@`, even if it has another name here.\n\n" +
		"In the tables, parameters in **bold** are required, and those with a 🔒 are secrets, which are shown nowhere.\n\n")

	b.WriteString("## Parameters of every service\n\n")
	writeParams(&b, all[0].Params, func(p notifier.ParamInfo) bool { return p.Common })

	b.WriteString("## Index\n\n" +
		"The link to acknowledge an incident (see [routing](escalate.md#what-each-service-shows)) is a `button`, " +
		"a `link` that opens with a tap or stands beside the text, a `field` for programs,\n" +
		"the last line of the `text`, or, where nobody could open it, `none`. " +
		"Some URLs of a service with a button have it in the text, for example those with a template.\n" +
		"\n| service | schemes | files | incidents | link to acknowledge | longest text |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, s := range all {
		files := ""
		if s.Attachments {
			files = "yes"
		}
		incidents := ""
		if len(s.Incidents) > 0 {
			incidents = "yes"
		}
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s | %s | %s | %s |\n", s.Name, anchor(s.Name),
			strings.Join(s.Schemes, "` `"), files, incidents, s.Acknowledge, limit(s, s.MaxBody))
	}
	b.WriteString("\n")
	for _, g := range notifier.Groups() {
		first := true
		for _, s := range all {
			if s.Groups[0] != g {
				continue
			}
			if first {
				fmt.Fprintf(&b, "## Group: %s\n\n", g.Title())
				first = false
			}
			writeService(&b, s)
		}
	}
	b.WriteString("## What can go wrong\n\n| you see | why | what to do |\n| --- | --- | --- |\n" +
		"| `which is not a scheme of any service` | The scheme is misspelt. | the one that the error suggests |\n" +
		"| `caddy notify check` shows a part of the password as the host | A " +
		"character of it has a meaning in URLs. | `%40` for `@`, `%2F` for `/` |\n" +
		"| `the service answered`, and 401 or 404 | The token is wrong or was deleted. | a new one |\n" +
		"| 200, but nothing arrives | The service took it. | Look into the service: muted channel, spam folder, wrong chat. |\n" +
		"| a long text comes in parts, or is cut | The service has a [limit](#index). | `overflow` in the URL |\n\n" +
		"More in [troubleshooting.md](troubleshooting.md#a-destination-fails).\n")
	return b.String()
}

// common are the services that most people need, by what they ask for.
var common = [][2]string{
	{"a phone, without an account", "ntfy"},
	{"a phone, loud alarms", "Pushover"},
	{"a phone, your own server", "Gotify"},
	{"Telegram", "Telegram"},
	{"WhatsApp", "WhatsApp"},
	{"Signal", "Signal API"},
	{"Discord", "Discord"},
	{"Slack", "Slack"},
	{"Teams", "Power Automate / Workflows (for MSTeams)"},
	{"Matrix, Element", "Matrix"},
	{"Mattermost", "Mattermost"},
	{"Home Assistant", "HomeAssistant"},
	{"SMS", "Twilio"},
	{"PagerDuty", "PagerDuty"},
	{"a webhook of your own", "JSON"},
}

// writeCommon shows for each of the services that most people need the form that is best for a newcomer.
func writeCommon(b *strings.Builder, all []notifier.ServiceInfo) {
	b.WriteString("## What most people need\n\n| for | write | |\n| --- | --- | --- |\n" +
		"| mail: Gmail, Outlook, iCloud, Fastmail, Proton, GMX | [by provider](mail-providers.md) | [E-Mail](#e-mail) |\n" +
		"| the browser of a phone, without an app | [no URL](phone.md) | |\n")
	for _, c := range common {
		i := slices.IndexFunc(all, func(s notifier.ServiceInfo) bool { return s.Name == c[1] })
		s := all[i]
		way := ""
		if len(s.Ways) > 0 {
			way = ", " + s.Ways[0]
		}
		fmt.Fprintf(b, "| %s | `%s` | [%s](#%s)%s |\n", c[0], s.Examples[0], s.Name, anchor(s.Name), way)
	}
	b.WriteString("\n")
}

// writeGroups lists the services by group.
func writeGroups(b *strings.Builder, all []notifier.ServiceInfo) {
	b.WriteString("## Services by group\n\nSome services are in several groups.\n\n| group | services |\n| --- | --- |\n")
	for _, g := range notifier.Groups() {
		var links []string
		for _, s := range all {
			if slices.Contains(s.Groups, g) {
				links = append(links, fmt.Sprintf("[%s](#%s)", s.Name, anchor(s.Name)))
			}
		}
		if len(links) > 0 {
			title := g.Title()
			if slices.ContainsFunc(all, func(s notifier.ServiceInfo) bool { return s.Groups[0] == g }) {
				title = fmt.Sprintf("[%s](#%s)", title, anchor("Group: "+title))
			}
			fmt.Fprintf(b, "| %s | %s |\n", title, strings.Join(links, ", "))
		}
	}
	b.WriteString("\n")
}

// urlsWithWays returns the URLs of a service, each with the name of its way.
func urlsWithWays(s notifier.ServiceInfo) (out []string) {
	width := 0
	for _, u := range s.URLs {
		width = max(width, len(u))
	}
	for i, u := range s.URLs {
		if len(s.Ways) > 0 {
			u = fmt.Sprintf("%-*s   %s", width, u, s.Ways[i])
		}
		out = append(out, u)
	}
	return out
}

// groupsAndWords says where the service is listed and by which words a search finds
// it.
func groupsAndWords(s notifier.ServiceInfo) string {
	titles := make([]string, len(s.Groups))
	for i, g := range s.Groups {
		titles[i] = g.Title()
	}
	text := strings.Join(titles, "; ") + "."
	if len(s.Words) > 0 {
		text += " Also found by: " + strings.Join(s.Words, ", ") + "."
	}
	return text
}

func writeService(b *strings.Builder, s notifier.ServiceInfo) {
	fmt.Fprintf(b, "### %s\n\n```text\n%s\n```\n\n", s.Name, strings.Join(s.Examples, "\n"))
	if s.Setup != "" {
		b.WriteString(s.Setup + "\n\n")
	}
	if s.Name == "E-Mail" {
		b.WriteString("For Gmail, Outlook, iCloud, Fastmail, Proton, GMX and others: [mail-providers.md](mail-providers.md).\n\n")
	}
	fmt.Fprintf(b, "[Documentation of the service](%s)\n\n```text\n%s\n```\n\n",
		s.Site, strings.Join(slices.Concat(urlsWithWays(s), s.Natives), "\n"))
	title := "up to " + limit(s, s.MaxTitle)
	if s.MaxTitle <= 0 {
		title = "none, it becomes the beginning of the text"
	}
	text := limit(s, s.MaxBody)
	if s.MaxBody > 0 {
		text = "up to " + text
	}
	files := "no"
	if s.Attachments {
		files = "yes"
	}
	fmt.Fprintf(b, "Title: %s. Text: %s, as %s. Files: %s.", title, text, s.Format, files)
	fmt.Fprintf(b, " Link to acknowledge: %s.", s.Acknowledge)
	if len(s.Incidents) > 0 {
		states := make([]string, len(s.Incidents))
		for i, state := range s.Incidents {
			states[i] = string(state)
		}
		fmt.Fprintf(b, " [Incidents](api.md#incidents): %s.", strings.Join(states, ", "))
	}
	b.WriteString("\n\n" + groupsAndWords(s) + "\n\n")
	writeParams(b, s.Params, func(p notifier.ParamInfo) bool { return !p.Common || p.Name == "format" && p.Default != "text" })
}

func limit(s notifier.ServiceInfo, n int) string {
	if n <= 0 {
		return "any length"
	}
	return fmt.Sprintf("%d %s", n, s.Unit)
}

// anchor returns the anchor that GitHub gives to a heading.
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

// escape escapes characters that have a meaning in a Markdown table.
var escape = strings.NewReplacer("|", `\|`, "<", `\<`)

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
		values := p.Values()
		if p.Kind == notifier.KindMap {
			values = "`" + values + "`"
		}
		for _, part := range p.Parts {
			values += "; `" + strings.Replace(part, ": ", "…`: ", 1)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, escape.Replace(p.Doc), escape.Replace(values), p.Default)
	}
	b.WriteString("\n")
}
