package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func servicesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "services [--json] [<name>|<search...>]",
		Short: "Lists the services, finds some, or describes the URLs of one",
		Long: `
Lists the services that messages can be sent to. With the name or a scheme of a
service, it describes the service's URLs and parameters and shows where to read
more. With any other words, it lists the services that they find, the best first:
by parts of names, by what people call a service or use it for, and by group, also
for a scheme that is such a word: push lists them, and push:// is the one service.
The last column says what matches. Names ignore case.
`,
		Example: `  caddy notify services
  caddy notify services discord
  caddy notify services gmail
  caddy notify services microsoft teams
  caddy notify services --json pushover`,
		RunE: exit.WithCode(func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				all := notifier.Services()
				if asJSON {
					return printJSON(out, all)
				}
				return printServices(out, all)
			}
			text := strings.Join(args, " ")
			s, err := findService(text)
			found := notifier.Search(text)
			if err == nil && notifier.Named(text) == nil && len(found) > 1 && !strings.Contains(text, "://") {
				err = errGroupWord // the word is for many services
			}
			switch {
			case err == nil && asJSON:
				return printJSON(out, s)
			case err == nil:
				return printService(out, s, betterThan(s, found))
			case isRetired(err) || len(found) == 0:
				return err
			case asJSON:
				return printJSON(out, found)
			}
			return printFound(out, text, found)
		}),
		ValidArgsFunction: completeService,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print JSON")
	return cmd
}

func completeService(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	word = strings.ToLower(word)
	var out []cobra.Completion
	for _, s := range notifier.Services() {
		for _, scheme := range s.Schemes {
			if strings.HasPrefix(scheme, word) {
				out = append(out, cobra.CompletionWithDesc(scheme, s.Name))
			}
		}
		if !strings.EqualFold(s.Name, s.Schemes[0]) && strings.HasPrefix(strings.ToLower(s.Name), word) {
			out = append(out, s.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// findService returns the service with a name or scheme. name may end with
// "://".
func findService(name string) (*notifier.ServiceInfo, error) {
	name, _, _ = strings.Cut(name, "://")
	if s := notifier.FindService(name); s != nil {
		return s, nil
	}
	if r := notifier.Retired(name); r != nil {
		return nil, r
	}
	if s := notifier.SimilarServices(name); len(s) > 0 {
		return nil, fmt.Errorf("there is no such service; did you mean %s?", strings.Join(s, " or "))
	}
	return nil, errors.New("there is no such service; caddy notify services lists all")
}

// errGroupWord is the error of a scheme that is also the word for a group of services.
var errGroupWord = errors.New("several services are meant")

// isRetired reports whether findService found a service that has ended.
func isRetired(err error) bool {
	e, ok := errors.AsType[*notifier.URLError](err)
	return ok && e.Retired
}

// betterThan returns the names of the services that a search finds before s, which
// has the text as its scheme.
func betterThan(s *notifier.ServiceInfo, found []notifier.Found) (names []string) {
	for _, f := range found {
		if f.Name == s.Name {
			return names
		}
		names = append(names, f.Name)
	}
	return names
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func printServices(w io.Writer, all []notifier.ServiceInfo) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVICE\tSCHEMES\tGROUP\tFILES\tINCIDENTS\tLONGEST TEXT")
	for i := range all {
		s := &all[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, strings.Join(s.Schemes, ", "),
			s.Groups[0], yesNo(s.Attachments), yesNo(len(s.Incidents) > 0), formatLength(s, s.MaxBody))
	}
	return table.Flush()
}

// printFound lists the services that a search for a text has found.
func printFound(w io.Writer, text string, found []notifier.Found) error {
	if device.IsMeant(text) {
		fmt.Fprint(w,
			"Your phone or browser needs no service: with push in the configuration, caddy notify\ninvite <key> makes a link for it.\n\n")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVICE\tSCHEMES\tGROUP\tFOUND BY")
	for _, f := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Name, strings.Join(f.Schemes, ", "), f.Groups[0], f.Reason)
	}
	return table.Flush()
}

// groupTitles names the groups of a service.
func groupTitles(s *notifier.ServiceInfo) string {
	titles := make([]string, len(s.Groups))
	for i, g := range s.Groups {
		titles[i] = g.Title()
	}
	return strings.Join(titles, "; ")
}

// printService writes the description of a service. others are services that may
// have been meant.
func printService(w io.Writer, s *notifier.ServiceInfo, others []string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\n%s\n", s.Name, s.Site)
	if s.Setup != "" {
		fmt.Fprintf(table, "\n%s\n", s.Setup)
	}
	fmt.Fprintf(table, "\nGroup\n  %s\n", groupTitles(s))
	fmt.Fprintln(table, "\nURLs")
	for i, u := range s.URLs {
		if len(s.Ways) > 0 {
			u += "\t" + s.Ways[i]
		}
		fmt.Fprintf(table, "  %s\n", u)
	}
	for _, u := range s.Natives {
		fmt.Fprintf(table, "  %s\n", u)
	}
	fmt.Fprintln(table, "\nExamples")
	for _, u := range s.Examples {
		fmt.Fprintf(table, "  %s\n", u)
	}
	title := "up to " + formatLength(s, s.MaxTitle)
	if s.MaxTitle <= 0 {
		title = "none; it becomes the beginning of the text"
	}
	fmt.Fprintf(table, "\nTakes\n  title\t%s\n  text\t%s, in %s\n  files\t%s\n  incidents\t%s\n  acknowledge\t%s\n",
		title, upTo(s, s.MaxBody), s.Format, yesNo(s.Attachments), incidents(s), acknowledge(s))
	for _, section := range []struct {
		heading string
		common  bool
	}{{"Parameters", false}, {"Parameters of every service", true}} {
		heading := section.heading
		for _, p := range s.Params {
			if p.Common != section.common {
				continue
			}
			if heading != "" {
				fmt.Fprintf(table, "\n%s\n", heading)
				heading = ""
			}
			fmt.Fprintf(table, "  %s\t%s\n", parameterNames(p), describeParameter(p))
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(table, "\nSee also\n  %s\n", strings.Join(others, ", "))
	}
	return table.Flush()
}

// incidents names the states of an incident that a service tells in its own way.
func incidents(s *notifier.ServiceInfo) string {
	if len(s.Incidents) == 0 {
		return "no"
	}
	states := make([]string, len(s.Incidents))
	for i, state := range s.Incidents {
		states[i] = string(state)
	}
	return strings.Join(states, ", ")
}

// acknowledge says where a service shows the link to acknowledge an incident.
func acknowledge(s *notifier.ServiceInfo) string {
	switch s.Acknowledge {
	case notifier.AcknowledgeByButton:
		return "with a button"
	case notifier.AcknowledgeByLink:
		return "with a link beside the text"
	case notifier.AcknowledgeInField:
		return "with a field for programs"
	case notifier.AcknowledgeNowhere:
		return "no; nobody could open a link there"
	}
	return "with a link at the end of the text"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func upTo(s *notifier.ServiceInfo, n int) string {
	if n <= 0 {
		return formatLength(s, n)
	}
	return "up to " + formatLength(s, n)
}

func formatLength(s *notifier.ServiceInfo, n int) string {
	if n <= 0 {
		return "any length"
	}
	return fmt.Sprintf("%d %s", n, s.Unit)
}

func parameterNames(p notifier.ParamInfo) string {
	if p.Kind == notifier.KindMap {
		return p.Prefix + "name"
	}
	return strings.Join(append([]string{p.Name}, p.Aliases...), ", ")
}

// describeParameter describes a parameter in one line.
func describeParameter(p notifier.ParamInfo) string {
	text := []string{p.Doc}
	if p.Required {
		text = append(text, "required")
	}
	if p.Secret {
		text = append(text, "secret")
	}
	switch p.Kind {
	case notifier.KindString, notifier.KindMap:
	case notifier.KindChoice:
		text = append(text, "one of "+p.Values())
	default:
		text = append(text, p.Values())
	}
	for _, part := range p.Parts {
		text = append(text, "with "+part)
	}
	if p.Default != "" {
		text = append(text, "default "+p.Default)
	}
	return strings.Join(text, "; ")
}
