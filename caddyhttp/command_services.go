package caddyhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func servicesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "services [--json] [<name>]",
		Short: "Lists the services, or describes the URLs of one",
		Long: `
Lists the services that messages can be sent to. With the name or a scheme of a
service, it describes the service's URLs and parameters and shows where to read
more. Names ignore case.
`,
		Example: `  caddy notify services
  caddy notify services discord
  caddy notify services --json pushover`,
		Args: cobra.MaximumNArgs(1),
		RunE: withExitCode(func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				all := notifier.Services()
				if asJSON {
					return printJSON(out, all)
				}
				return printServices(out, all)
			}
			s, err := findService(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(out, s)
			}
			return printService(out, s)
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

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func printServices(w io.Writer, all []notifier.ServiceInfo) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVICE\tSCHEMES\tFILES\tLONGEST TEXT")
	for i := range all {
		s := &all[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Name, strings.Join(s.Schemes, ", "), yesNo(s.Attachments), formatLength(s, s.MaxBody))
	}
	return table.Flush()
}

// printService writes the description of a service.
func printService(w io.Writer, s *notifier.ServiceInfo) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\n%s\n", s.Name, s.Site)
	if s.Setup != "" {
		fmt.Fprintf(table, "\n%s\n", s.Setup)
	}
	fmt.Fprintln(table, "\nURLs")
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
	title := "up to " + formatLength(s, s.MaxTitle)
	if s.MaxTitle <= 0 {
		title = "none; it becomes the beginning of the text"
	}
	fmt.Fprintf(table, "\nTakes\n  title\t%s\n  text\t%s, in %s\n  files\t%s\n", title, upTo(s, s.MaxBody), s.Format, yesNo(s.Attachments))
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
	return table.Flush()
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
