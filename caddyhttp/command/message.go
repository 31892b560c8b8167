package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/internal/charset"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
)

// messageFlags are the flags for a message and its recipients.
type messageFlags struct {
	title, body, typ, format string
	incident                 string
	files                    []string
	tags                     []string
	key, config, adapter     string

	stdin string // what was read from standard input
}

func (f *messageFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.title, "title", "t", "", "Title of the message")
	flags.StringVarP(&f.body, "body", "b", "", "Text of the message")
	flags.StringVar(&f.typ, "type", "info", "info, success, warning or failure")
	flags.StringVar(&f.format, "format", "text", "Format of title and text: text, markdown or html")
	flags.StringVar(&f.incident, "incident", "", "What the message is about: failure and warning open it, success resolves it")
	flags.StringArrayVarP(&f.files, "attach", "a", nil, "File to attach (may be repeated)")
	flags.StringVarP(&f.key, "key", "k", "", "Key of the configuration to send to, instead of URLs")
	flags.StringVarP(&f.config, "config", "c", "", "Configuration file with the key, or - for standard input (default: Caddyfile)")
	flags.StringVar(&f.adapter, "adapter", "", "Config adapter to apply (default: caddyfile, unless the file is JSON)")
	flags.StringArrayVar(&f.tags, "tag", nil, "Tag expression that chooses among the URLs of the key (repeated: or)")
	complete := func(flag string, values ...cobra.Completion) {
		// It fails only if the flag does not exist.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	complete("type", "info", "success", "warning", "failure")
	complete("format", "text", "markdown", "html")
	for _, flag := range []string{"title", "body", "incident", "key", "tag", "adapter"} {
		complete(flag)
	}
	cmd.ValidArgsFunction = completeURL
}

// validate returns an error if a flag would have no effect.
func (f *messageFlags) validate() error {
	if f.key != "" {
		return nil
	}
	for _, p := range []struct {
		name string
		set  bool
	}{{"--tag", len(f.tags) > 0}, {"--config", f.config != ""}, {"--adapter", f.adapter != ""}} {
		if p.set {
			return fmt.Errorf("%s has no effect without --key; add --key <name>", p.name)
		}
	}
	return nil
}

// claimStdin returns an error if standard input is used for something else
// already, because it can be read only once. what describes the new use.
func (f *messageFlags) claimStdin(what string) error {
	if f.stdin != "" {
		return fmt.Errorf("standard input cannot be both %s and %s; give the text with --body, or use files", f.stdin, what)
	}
	f.stdin = what
	return nil
}

// message returns the message that the flags describe, which may have no body.
// Its attachments are stored in files.
func (f *messageFlags) message(cmd *cobra.Command, files *spool.Spool) (*notifier.Message, error) {
	m := &notifier.Message{Title: markup.OneLine(decoded(f.title)), Body: decoded(f.body), Time: time.Now()}
	var err error
	if m.Type, err = notifier.ParseType(f.typ); err != nil {
		return nil, fmt.Errorf("--type: %w", err)
	}
	if m.Format, err = markup.ParseFormat(f.format); err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	name, hashed, err := notifier.IncidentName(decoded(f.incident))
	if err != nil {
		return nil, fmt.Errorf("--incident: %w", err)
	}
	if hashed {
		cmd.PrintErrf("Warning: --incident is longer than %d bytes, so its SHA-256 hash is used\n", notifier.MaxIncidentName)
	}
	m.Incident = notifier.Incident{Name: name}.For(f.key, "")
	for _, name := range f.files {
		a, err := readFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("--attach: %w", err)
		}
		m.Attachments = append(m.Attachments, a)
	}
	return m, nil
}

// maxCommandFile bounds the files of a command, in bytes. No service takes as
// much.
const maxCommandFile = 1 << 40

func (f *messageFlags) spool() *spool.Spool {
	return &spool.Spool{MaxSize: maxCommandFile, MaxCount: len(f.files)}
}

func readFile(files *spool.Spool, name string) (*notifier.Attachment, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder; name files", name)
	}
	a, err := files.Add(name, "", file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

// maxText is the size of the largest text of a message, in bytes. It is the
// default of max_body.
const maxText = 8 << 20

// readBody reads the text of the message from standard input. A message with
// files needs no text, so that a terminal is not read for it.
func (f *messageFlags) readBody(cmd *cobra.Command, hasFiles bool) (string, error) {
	in := cmd.InOrStdin()
	file, ok := in.(*os.File)
	terminal := ok && term.IsTerminal(int(file.Fd()))
	if hasFiles && (terminal || f.stdin != "") {
		return "", nil
	}
	if err := f.claimStdin("the text of the message"); err != nil {
		return "", err
	}
	if terminal {
		cmd.PrintErrln("Type the message, and end it with Ctrl+D on a new line.")
	}
	b, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return "", fmt.Errorf("reading the text of the message: %w", err)
	}
	if len(b) > maxText {
		return "", fmt.Errorf("the text of the message is longer than %s; send it as a file with --attach", humanize.IBytes(maxText))
	}
	return decoded(string(b)), nil
}

// decoded returns a text of the command line or of standard input, which is in any charset.
func decoded(s string) string {
	s, _ = charset.DecodeString(s, "")
	return s
}

// recipients are the destinations of a command's message, and the settings that
// apply to it.
type recipients struct {
	targets  []notifier.Target
	identity *notifier.Identity // the sender
	timeout  time.Duration      // for one destination, all attempts together
}

// close closes the destinations.
func (r *recipients) close() {
	for _, t := range r.targets {
		t.Close()
	}
}

// keyRecipients returns the recipients for --key.
func (f *messageFlags) keyRecipients(cmd *cobra.Command, args []string) (*recipients, error) {
	if len(args) > 0 {
		return nil, errors.New("there are both URLs and --key; remove one of them")
	}
	if f.config == "-" {
		if err := f.claimStdin("the configuration (--config -)"); err != nil {
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
	config, err := caddyhttp.ReadConfig(cmd.InOrStdin(), f.config, f.adapter)
	if err != nil {
		return nil, err
	}
	k, err := config.Key(f.key)
	if err != nil {
		return nil, err
	}
	targets, err := k.Choose(tags)
	if err != nil {
		return nil, err
	}
	return &recipients{targets, k.Identity, k.Timeout}, nil
}
