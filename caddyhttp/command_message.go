package caddyhttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// urlsVariable is the environment variable with the URLs of a command that
// names none.
const urlsVariable = "CADDY_NOTIFY_URLS"

// messageFlags are what a message is made of on the command line, and who it
// goes to.
type messageFlags struct {
	title, body, kind, format string
	files                     []string
	tags                      []string
	key, config, adapter      string

	stdin string // what has been read from standard input
}

func (f *messageFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.title, "title", "t", "", "Title of the message")
	flags.StringVarP(&f.body, "body", "b", "", "Text of the message")
	flags.StringVar(&f.kind, "type", "info", "info, success, warning or failure")
	flags.StringVar(&f.format, "format", "text", "How title and text are written: text, markdown or html")
	flags.StringArrayVarP(&f.files, "attach", "a", nil, "File to go along (may be repeated)")
	flags.StringVarP(&f.key, "key", "k", "", "Key of the configuration to send to, in place of URLs")
	flags.StringVarP(&f.config, "config", "c", "", "Configuration file with the key, or - (default: Caddyfile)")
	flags.StringVar(&f.adapter, "adapter", "", "Config adapter to apply (default: caddyfile, unless the file is JSON)")
	flags.StringArrayVar(&f.tags, "tag", nil, "Tags that choose among the URLs of the key (repeated: or)")
	complete := func(flag string, values ...cobra.Completion) {
		// An error means that there is no such flag.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("type", "info", "success", "warning", "failure")
	complete("format", "text", "markdown", "html")
	for _, flag := range []string{"title", "body", "key", "tag", "adapter"} {
		complete(flag)
	}
	cmd.ValidArgsFunction = completeURL
}

// takeInput claims standard input, which can be read once.
func (f *messageFlags) takeInput(what string) error {
	if f.stdin != "" {
		return fmt.Errorf("standard input cannot be both %s and %s; give the text with --body, or use files", f.stdin, what)
	}
	f.stdin = what
	return nil
}

// message is what the flags say, without the text where they give none. spool
// keeps the files.
func (f *messageFlags) message(spool *notifier.Spool) (*notifier.Message, error) {
	m := &notifier.Message{Title: joinTitle(strings.ToValidUTF8(f.title, "\uFFFD")), Body: strings.ToValidUTF8(f.body, "\uFFFD"), Time: time.Now()}
	var err error
	if m.Type, err = notifier.ParseType(f.kind); err != nil {
		return nil, fmt.Errorf("--type: %w", err)
	}
	if m.Format, err = markup.ParseFormat(f.format); err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	for _, name := range f.files {
		a, err := readFile(spool, name)
		if err != nil {
			return nil, fmt.Errorf("--attach: %w", err)
		}
		m.Attachments = append(m.Attachments, a)
	}
	return m, nil
}

// maxFile is more than anybody sends.
const maxFile = 1 << 40

func (f *messageFlags) spool() *notifier.Spool {
	return &notifier.Spool{MaxSize: maxFile, MaxCount: len(f.files)}
}

func readFile(spool *notifier.Spool, name string) (*notifier.Attachment, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name files", name)
	}
	a, err := spool.Add(name, "", file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// urls are those of the command's arguments, or else of the environment.
func (f *messageFlags) urls(cmd *cobra.Command, args []string) (urls []string, err error) {
	if len(args) == 0 {
		urls = api.SplitURLs(os.Getenv(urlsVariable))
		if len(urls) == 0 {
			return nil, fmt.Errorf("there is nobody to send to; name URLs, @file with a URL on each line, --key, or set %s", urlsVariable)
		}
		return urls, nil
	}
	for _, arg := range args {
		name, isFile := strings.CutPrefix(arg, "@")
		if !isFile {
			urls = append(urls, api.SplitURLs(arg)...)
			continue
		}
		var lines []string
		if name == "-" {
			if err := f.takeInput("the URLs (@-)"); err != nil {
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
		return nil, errors.New("there is nobody to send to; the arguments name no URL")
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

var comment = regexp.MustCompile(`(^|\s)#`)

// readURLs reads the URLs of each line. A # at the beginning of a line or
// behind a space begins a comment; any other one is part of the URL.
func readURLs(r io.Reader) (urls []string, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if at := comment.FindStringIndex(line); at != nil {
			line = line[:at[0]]
		}
		urls = append(urls, api.SplitURLs(line)...)
	}
	return urls, lines.Err()
}

// audience is who a command's message goes to, and the rules for it.
type audience struct {
	targets  []notifier.Target
	settings *resolved
}

// close ends what the destinations keep.
func (a *audience) close() {
	for _, t := range a.targets {
		t.Close()
	}
}

// keyAudience is the audience where the flags name a key.
func (f *messageFlags) keyAudience(cmd *cobra.Command, args []string) (*audience, error) {
	if len(args) > 0 {
		return nil, errors.New("give either URLs or --key")
	}
	if f.config == "-" {
		if err := f.takeInput("the configuration (--config -)"); err != nil {
			return nil, err
		}
	}
	list := make([]any, len(f.tags))
	for i, tag := range f.tags {
		list[i] = tag
	}
	tags, err := notifier.ParseTags(list)
	if err != nil {
		return nil, fmt.Errorf("--tag: %w", err)
	}
	config, err := readConfig(cmd.InOrStdin(), f.config, f.adapter)
	if err != nil {
		return nil, err
	}
	settings, err := loadKey(config, f.key)
	if err != nil {
		return nil, err
	}
	targets, err := settings.keys[f.key].choose(tags)
	if err != nil {
		return nil, err
	}
	return &audience{targets: targets, settings: settings}, nil
}

// checkFlags refuses flags that would have no effect.
func (f *messageFlags) checkFlags() error {
	if f.key != "" {
		return nil
	}
	for _, p := range []struct {
		name string
		set  bool
	}{{"--config", f.config != ""}, {"--adapter", f.adapter != ""}, {"--tag", len(f.tags) > 0}} {
		if p.set {
			return fmt.Errorf("%s goes with --key", p.name)
		}
	}
	return nil
}

// parseArgument understands a URL of the command line. Placeholders work as
// in a Caddyfile: whoever gives commands may read the files and variables.
func parseArgument(text string) (*notifier.Destination, error) {
	text, err := resolveURL(text)
	if err != nil {
		return nil, err
	}
	d, err := notifier.Parse(text, nil)
	if err != nil {
		return nil, notifier.WithSuggestion(text, err)
	}
	return d, nil
}

// whichURL names a URL in errors, since it must not be shown.
func whichURL(i, all int) string {
	if all == 1 {
		return ""
	}
	return fmt.Sprintf("URL %d of %d: ", i+1, all)
}

// completeURL completes the beginning of a URL: the schemes.
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
