package caddyhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func servicesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "services [--json] [<name>]",
		Short: "Lists the services, or tells how the URL of one is written",
		Long: `
Lists the services that messages can be sent to, or, with the name or a scheme
of one, tells how its URL is written, what it takes and where to read more.
Upper and lower case do not matter.
`,
		Example: `  caddy notify services
  caddy notify services discord
  caddy notify services --json pushover`,
		Args: cobra.MaximumNArgs(1),
		RunE: exiting(func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				all := notifier.Services()
				if asJSON {
					return writeJSON(out, all)
				}
				return writeServices(out, all)
			}
			s, err := findService(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(out, s)
			}
			return writeService(out, s)
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
	var out []cobra.Completion
	for _, s := range notifier.Services() {
		for _, scheme := range s.Schemes {
			if strings.HasPrefix(scheme, strings.ToLower(word)) {
				out = append(out, cobra.CompletionWithDesc(scheme, s.Name))
			}
		}
		if !strings.EqualFold(s.Name, s.Schemes[0]) && strings.HasPrefix(strings.ToLower(s.Name), strings.ToLower(word)) {
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
	if s := notifier.SimilarServices(name); len(s) > 0 {
		return nil, fmt.Errorf("there is no such service; did you mean %s?", strings.Join(s, " or "))
	}
	return nil, errors.New("there is no such service; caddy notify services lists all")
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func writeServices(w io.Writer, all []notifier.ServiceInfo) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVICE\tSCHEMES\tFILES\tLONGEST TEXT")
	for i := range all {
		s := &all[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, strings.Join(s.Schemes, ", "), yesNo(s.Attachments), length(s, s.MaxBody))
	}
	return table.Flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func length(s *notifier.ServiceInfo, n int) string {
	if n <= 0 {
		return "any length"
	}
	return fmt.Sprintf("%d %s", n, s.Unit)
}

// writeService writes all there is to know about a service.
func writeService(w io.Writer, s *notifier.ServiceInfo) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\n%s\n\nURLs\n", s.Name, s.Site)
	for _, u := range s.URLs {
		fmt.Fprintf(table, "  %s\n", u)
	}
	for _, u := range s.Natives {
		fmt.Fprintf(table, "  %s\n", u)
	}
	fmt.Fprintln(table, "\nExamples")
	for _, u := range s.Examples {
		fmt.Fprintf(table, "  %s\n", u)
	}
	title := "up to " + length(s, s.MaxTitle)
	if s.MaxTitle <= 0 {
		title = "none; it becomes the beginning of the text"
	}
	fmt.Fprintf(table, "\nTakes\n  title\t%s\n  text\t%s, in %s\n  files\t%s\n", title, upTo(s, s.MaxBody), s.Format, yesNo(s.Attachments))
	for _, part := range []struct {
		heading string
		common  bool
	}{{"Parameters", false}, {"Parameters of every service", true}} {
		heading := part.heading
		for _, p := range s.Params {
			if p.Common != part.common {
				continue
			}
			if heading != "" {
				fmt.Fprintf(table, "\n%s\n", heading)
				heading = ""
			}
			fmt.Fprintf(table, "  %s\t%s\n", parameterNames(p), describe(p))
		}
	}
	return table.Flush()
}

func upTo(s *notifier.ServiceInfo, n int) string {
	if n <= 0 {
		return length(s, n)
	}
	return "up to " + length(s, n)
}

func parameterNames(p notifier.ParamInfo) string {
	if p.Kind == notifier.KindMap {
		return p.Prefix + "name"
	}
	return strings.Join(append([]string{p.Name}, p.Aliases...), ", ")
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// describe says in a line what a parameter is.
func describe(p notifier.ParamInfo) string {
	text := []string{p.Doc}
	if p.Required {
		text = append(text, "required")
	}
	if p.Secret {
		text = append(text, "secret")
	}
	switch {
	case p.Kind == notifier.KindBool:
		text = append(text, "yes or no")
	case len(p.Choices) > 0:
		text = append(text, "one of "+strings.Join(p.Choices, ", "))
	case p.Min != nil && p.Max != nil:
		text = append(text, decimal(*p.Min)+" to "+decimal(*p.Max))
	case p.Min != nil:
		text = append(text, decimal(*p.Min)+" or more")
	case p.Kind == notifier.KindList:
		text = append(text, "a list")
	}
	for _, part := range p.Parts {
		text = append(text, "with "+part)
	}
	if p.Default != "" {
		text = append(text, "default "+p.Default)
	}
	return strings.Join(text, "; ")
}
