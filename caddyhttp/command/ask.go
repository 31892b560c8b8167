package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// The exit codes of the command ask.
const (
	askFirst   = 0 // the answer is the first option, or a text
	askOther   = 1 // it is another option
	askFailed  = 2 // there is no answer, because of an error
	askExpired = 3 // nobody has answered in time
)

// askFlags are the flags of the command ask.
type askFlags struct {
	adminFlags
	request struct {
		Title   string   `json:"title,omitempty"`
		Body    string   `json:"body"`
		Type    string   `json:"type,omitempty"`
		Tag     string   `json:"tag,omitempty"`
		Options []string `json:"options,omitempty"`
		Text    bool     `json:"text,omitempty"`
		Timeout string   `json:"timeout,omitempty"`
		Default string   `json:"default,omitempty"`
		Tell    bool     `json:"tell,omitempty"`
	}
	key, space    string
	acceptDefault bool
}

func askCommand() *cobra.Command {
	f := new(askFlags)
	cmd := &cobra.Command{
		Use:   "ask --key <name> --option <text>... | --text [--timeout <duration>] <question>",
		Short: "Asks people a question, and waits for the answer",
		Long: `
Asks the people behind a key a question, waits for the answer and prints it. It uses
the admin API of the server, which needs a queue and public_url. If the command is
interrupted, the question is withdrawn.

Exit codes:

  0  the answer is the first option, or a text
  1  it is another option
  2  there is no answer: the question could not be asked, or was withdrawn
  3  nobody has answered in time, also if there is a default, which is printed then
`,
		Example: `  caddy notify ask --key ops --option deploy --option wait --timeout 10m "Deploy 1.4?" && ./deploy
  caddy notify ask --key ops --text "Which host?"`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.exitCode(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.key, "key", "k", "", "The key whose destinations are asked")
	flags.StringVar(&f.space, "space", "", "The space of a saved key; default is the one without a name")
	flags.StringArrayVarP(&f.request.Options, "option", "o", nil,
		"An answer to choose, 2 to 6 of them; the first one is exit code 0 (repeat it)")
	flags.BoolVar(&f.request.Text, "text", false, "The answer is a text, in place of options")
	flags.StringVar(&f.request.Timeout, "timeout", "", "How long people can answer, such as 10m; 10s to 7d (default: 1h)")
	flags.StringVar(&f.request.Default, "default", "", "The answer that is taken if nobody answers")
	flags.BoolVar(&f.acceptDefault, "accept-default", false, "Use the exit code of the default if nobody answers")
	flags.StringVarP(&f.request.Title, "title", "t", "", "Title of the message")
	flags.StringVar(&f.request.Type, "type", "", "info, success, warning or failure (default: info)")
	flags.StringVar(&f.request.Tag, "tag", "", "Tag expression that chooses among the URLs of the key")
	flags.BoolVar(&f.request.Tell, "tell", false, "Tell those who were asked what the answer is")
	f.connectJSON(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return exit.Code(cmd, askFailed, err) })
	return cmd
}

// exitCode runs the command, and returns the error with its exit code.
func (f *askFlags) exitCode(cmd *cobra.Command, args []string) error {
	code, err := f.run(cmd, args)
	if err == nil && code == askFirst {
		return nil
	}
	return exit.Code(cmd, code, err)
}

// question has the fields that the command uses of a question.
type question struct {
	ID           string
	Destinations int
	State        string
	Answer       *string
	By, Through  string
	Until        time.Time
}

func (f *askFlags) run(cmd *cobra.Command, args []string) (code int, err error) {
	if err := f.check(args); err != nil {
		return askFailed, err
	}
	f.request.Body = args[0]
	body, err := json.Marshal(f.request)
	if err != nil {
		return askFailed, err
	}
	path := "/notify/keys/" + url.PathEscape(f.key) + "/questions"
	if f.space != "" {
		path += "?space=" + url.QueryEscape(f.space)
	}
	answer, err := f.ask(http.MethodPost, path, body)
	if err != nil {
		return askFailed, errors.New(asFlags.Replace(err.Error()))
	}
	var q question
	if err := decode(answer, &q); err != nil {
		return askFailed, err
	}
	cmd.PrintErrf("Asked at %s. Waiting for the answer until %s; interrupt to withdraw the question.\n",
		words.Count(q.Destinations, "destination"), q.Until.Local().Format(time.DateTime))
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	answer, err = f.wait(ctx, &q)
	if err != nil {
		return askFailed, err
	}
	if err := f.show(cmd, answer, &q, func() error { return f.print(cmd, &q) }); err != nil {
		return askFailed, fmt.Errorf("writing the answer: %w", err)
	}
	return f.codeOf(&q)
}

// asFlags replaces the fields of a question in an error of the server by the flags of the command.
var asFlags = strings.NewReplacer("the field ask.options", "--option", "the field ask.", "--")

// check returns an error if something is missing or has no effect.
func (f *askFlags) check(args []string) error {
	switch {
	case f.key == "":
		return errors.New("--key is missing; write --key <name> with the key whose destinations are asked")
	case len(args) != 1 || strings.TrimSpace(args[0]) == "":
		return errors.New(`write one question, in quotes: caddy notify ask --key ops --option yes --option no "Deploy?"`)
	case f.request.Text && len(f.request.Options) > 0:
		return errors.New("--text and --option exclude each other; leave out --option for a free answer, or --text for a choice")
	case !f.request.Text && len(f.request.Options) == 0:
		return errors.New("the answers to choose from are missing; write --option for each of them, or --text for a free answer")
	case f.acceptDefault && f.request.Default == "":
		return errors.New("--accept-default has no effect without --default")
	}
	return nil
}

// The times of waiting for an answer.
const (
	askWait = 30 * time.Second // with one request
	askLost = time.Minute      // that the server may be away, as in a restart
	askNext = time.Second      // before it is asked again then
)

// wait waits until a question is not open, and returns it as the admin API does. If ctx is
// done, it withdraws the question.
func (f *askFlags) wait(ctx context.Context, q *question) ([]byte, error) {
	path := "/notify/questions/" + q.ID
	reached := time.Now()
	for ctx.Err() == nil {
		answer, err := f.waitOnce(ctx, path)
		if err == nil {
			err = decode(answer, q)
		}
		switch {
		case ctx.Err() != nil:
		case err == nil && q.State != "open":
			return answer, nil
		case err == nil:
			reached = time.Now()
		case time.Since(reached) > askLost:
			return nil, err
		default:
			select {
			case <-ctx.Done():
			case <-time.After(askNext):
			}
		}
	}
	if _, err := f.ask(http.MethodDelete, path, nil); err != nil {
		return nil, fmt.Errorf("the question is still open, because it cannot be withdrawn: %w", err)
	}
	return nil, errors.New("interrupted; the question is withdrawn")
}

// waitOnce waits with one request, and returns when ctx is done.
func (f *askFlags) waitOnce(ctx context.Context, path string) ([]byte, error) {
	type result struct {
		answer []byte
		err    error
	}
	done := make(chan result, 1)
	go func() { // it ends at the latest when the server answers
		answer, err := f.ask(http.MethodGet, fmt.Sprintf("%s?wait=%d", path, int(askWait.Seconds())), nil)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// print prints the answer and, to standard error, who has given it.
func (f *askFlags) print(cmd *cobra.Command, q *question) error {
	if q.Answer != nil {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), markup.Printable(*q.Answer)); err != nil {
			return err
		}
	}
	switch {
	case q.State == "expired":
		cmd.PrintErrln("Nobody has answered in time.")
	case q.By != "":
		cmd.PrintErrf("Answered by %s.\n", markup.Printable(q.By))
	}
	return nil
}

// codeOf returns the exit code for the outcome of a question.
func (f *askFlags) codeOf(q *question) (int, error) {
	answered := q.State == "answered" || q.State == "expired" && f.acceptDefault
	switch {
	case q.State == "cancelled":
		return askFailed, errors.New("the question was withdrawn")
	case !answered:
		return askExpired, nil
	case q.Answer != nil && !f.request.Text && slices.Index(f.request.Options, *q.Answer) > 0:
		return askOther, nil
	}
	return askFirst, nil
}
