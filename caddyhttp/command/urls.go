package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// urlsVariable is the environment variable with the URLs for a command without
// arguments.
const urlsVariable = "CADDY_NOTIFY_URLS"

// urls returns the URLs in the command's arguments or, without arguments, in
// the environment.
func (f *messageFlags) urls(cmd *cobra.Command, args []string) (urls []string, err error) {
	if len(args) == 0 {
		urls = notifier.SplitURLs(os.Getenv(urlsVariable))
		if len(urls) == 0 {
			return nil, fmt.Errorf("there is no destination; give URLs, @file with a URL on each line, or --key, or set %s", urlsVariable)
		}
		return urls, nil
	}
	for _, arg := range args {
		name, isFile := strings.CutPrefix(arg, "@")
		if !isFile {
			urls = append(urls, notifier.SplitURLs(arg)...)
			continue
		}
		var lines []string
		if name == "-" {
			if err := f.claimStdin("the URLs (@-)"); err != nil {
				return nil, err
			}
			lines, err = readURLs(cmd.InOrStdin())
		} else {
			lines, err = readURLFile(name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading URLs: %w", err)
		}
		urls = append(urls, lines...)
	}
	if len(urls) == 0 {
		return nil, errors.New("there is no destination, because the arguments contain no URL")
	}
	return urls, nil
}

func readURLFile(name string) ([]string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readURLs(file)
}

// comment matches the beginning of a comment. A # within a URL begins none.
var comment = lazyregexp.New(`(^|\s)#`)

// readURLs returns the URLs on each line, without comments.
func readURLs(r io.Reader) (urls []string, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if at := comment.FindStringIndex(line); at != nil {
			line = line[:at[0]]
		}
		urls = append(urls, notifier.SplitURLs(line)...)
	}
	return urls, lines.Err()
}

// parseArgument returns the destination of a URL of the command line.
// Placeholders are replaced as in a Caddyfile, since the user of the command can
// read the same files and variables.
func parseArgument(url string) (*notifier.Destination, error) {
	url, err := placeholder.ResolveURL(url)
	if err != nil {
		return nil, err
	}
	d, err := notifier.ParseWithFiles(url, nil, notifier.Files{Dir: "."})
	if err != nil {
		return nil, message.WithSuggestion(url, err)
	}
	return d, nil
}

// urlNumber names the i-th of n URLs in an error, which must not show the URL.
func urlNumber(i, n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf("URL %d of %d: ", i+1, n)
}

// completeURL completes the scheme of a URL.
func completeURL(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if strings.HasPrefix(word, "@") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var out []cobra.Completion
	for _, s := range notifier.Services() {
		for _, scheme := range s.Schemes {
			if strings.HasPrefix(scheme+"://", strings.ToLower(word)) {
				out = append(out, cobra.CompletionWithDesc(scheme+"://", s.Name))
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
