package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
)

// initFlags are the flags of the command init.
type initFlags struct {
	out    string
	site   string
	to     string
	keep   bool
	noTest bool
}

// localSite is the value of --site for programs on this machine only. A port may follow.
const localSite = "local"

// Values of --to without a notification URL.
const (
	toDevice = "phone" // a phone or a browser, without an app
	toApp    = "app"   // ntfy's app, which reads the inbox of the key
)

func initCommand() *cobra.Command {
	f := new(initFlags)
	cmd := &cobra.Command{
		Use:   "init [--out <folder>] [--site <address>] [--to <url>|@<file>] [--keep=false]",
		Short: "Writes a first Caddyfile, after three questions",
		Long: `
Writes a Caddyfile for a gateway with one key and the console, where keys can be added
and messages read for a week, checks that it loads, and sends a test message. It asks three questions in a terminal. A question that a
flag answers is not asked:

  --site  Who may send? "local" is programs on this machine, without a password, at
          port 8080; "local:8081" is another port. A domain name or a port, such as
          alerts.example.com or :8080, is everybody who has a password, which is
          made and kept in a file.
  --to    Where do messages go? A notification URL, or what a service gives out:
          the address of a webhook, a token, an e-mail address. "phone" is your
          phone or browser, without an app. It needs HTTPS that the phone trusts: in
          --site a domain name, or the name of this machine in Tailscale or the like.
          Without either, "app" is ntfy's app, which reads the messages at this
          machine over your network.
          In a terminal, what is missing is asked for, such as the app password of
          "gmail".
          "@file" and "@-" (standard input) keep it out of the list of processes.
  --keep  Are messages that cannot be delivered at once kept and tried again, also
          after a restart?

Without a terminal nothing is asked: --to is required, and the others have their
defaults.

The console at /notify/console asks for the user admin and a password of its own. The
Caddyfile, the passwords and the notification URL are files that only the user of this
command can read. Run Caddy as the same user. Files that exist are never replaced.

Exit codes:

  0  everything is written, and the test message has arrived
  1  nothing is written; the error tells what to correct
  2  everything is written, but the test message could not be delivered
`,
		Example: `  caddy notify init
  caddy notify init --site alerts.example.com --out /etc/caddy/notify
  printenv NTFY_URL | caddy notify init --to @- --keep=false`,
		Args: cobra.NoArgs,
		RunE: exit.WithCode(f.run),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "out", "o", "notify", "The folder for the Caddyfile and the secrets")
	flags.StringVar(&f.site, "site", localSite,
		"Who may send: local or local:<port>, or the address of the site for everybody with the password")
	flags.StringVar(&f.to, "to", "", "Where messages go: a notification URL, what a service gives out, phone or app; @file or @- reads it")
	flags.BoolVar(&f.keep, "keep", true, "Keep messages that cannot be delivered at once")
	flags.BoolVar(&f.noTest, "no-test", false, "Send no test message")
	return cmd
}

func (f *initFlags) run(cmd *cobra.Command, _ []string) error {
	out, err := folder.Path(f.out)
	if err != nil {
		return err
	}
	const remedy = "choose another folder with --out, or change what is there"
	absent := []string{filepath.Join(out, folder.Caddyfile)}
	for _, name := range []string{initKey, folder.Password, initConsole, initReader} {
		absent = append(absent, filepath.Join(out, folder.Secrets, name))
	}
	if err := folder.CheckAbsent(absent, remedy); err != nil {
		return err
	}
	a := &asker{out: cmd.ErrOrStderr()}
	if isTerminal(cmd.InOrStdin()) {
		a.read(cmd.InOrStdin())
	}
	first, err := f.answers(cmd, a)
	if err != nil {
		return err
	}
	files, err := first.files(out)
	if err != nil {
		return err
	}
	if err := folder.Write(out, files, false, remedy); err != nil {
		return err
	}
	if err := folder.Check(filepath.Join(out, folder.Caddyfile)); err != nil {
		return fmt.Errorf("the files are written, but the Caddyfile does not load: %w", err)
	}
	if err := first.report(cmd.OutOrStdout(), out); err != nil {
		return err
	}
	if f.noTest || first.url == "" {
		return nil
	}
	return first.sendTest(cmd)
}

// answers returns what the flags say, and asks for the rest.
func (f *initFlags) answers(cmd *cobra.Command, a *asker) (*firstConfig, error) {
	first := &firstConfig{keep: f.keep}
	changed := cmd.Flags().Changed
	text := f.to
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if text, err = readTo(cmd.InOrStdin(), name); err != nil {
			return nil, fmt.Errorf("--to: %w", err)
		}
	}
	switch {
	case text == "" && changed("to"):
		return nil, errors.New("--to: it is empty; give a notification URL, or what a service gives out")
	case text == "" && !a.canAsk():
		return nil, errors.New("standard input is no terminal, so nothing can be asked; " +
			"give --to with a notification URL, or with what a service gives out (@- reads it from standard input)")
	}
	site := f.site
	if !changed("site") && a.canAsk() {
		var err error
		if site, err = a.askSite(); err != nil {
			return nil, err
		}
	}
	if err := first.setSite(site); err != nil {
		return nil, fmt.Errorf("--site: %w", err)
	}
	var err error
	switch {
	case text == toDevice:
		if first.device = true; first.public() == "" {
			return nil, errors.New("--to: a phone or a browser needs HTTPS with a certificate that it trusts; give --site with a domain name, " +
				"such as alerts.example.com, or with the name of this machine in Tailscale or the like; " +
				"or give --to app, and ntfy's app reads the messages over your network")
		}
	case text == toApp:
		first.setApp()
	case !a.canAsk():
		first.url, first.service, err = urlOf(text)
		if err != nil {
			return nil, fmt.Errorf("--to: %w", err)
		}
	default:
		if err = a.askURL(first, text); err != nil {
			return nil, err
		}
	}
	if first.url == "" {
		first.keep = true // the queue keeps devices and inboxes, too
	} else if !changed("keep") && a.canAsk() {
		if first.keep, err = a.askKeep(); err != nil {
			return nil, err
		}
	}
	first.makeSecrets()
	return first, nil
}

// readTo returns the text of --to in a file, or on standard input if the name is -.
func readTo(stdin io.Reader, name string) (string, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		stdin = file
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxLine))
	text := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", err
	case text == "":
		return "", fmt.Errorf("@%s is empty", name)
	case strings.ContainsAny(text, "\r\n"):
		return "", fmt.Errorf("@%s has several lines; give one destination, and add the others to the Caddyfile", name)
	}
	return text, nil
}

// sendTest sends the test message, as the gateway will.
func (c *firstConfig) sendTest(cmd *cobra.Command) error {
	send := &sendFlags{
		messageFlags: messageFlags{title: "It works", body: "caddy notify init has sent this message.", typ: "info", format: "text"},
	}
	to, err := send.recipients(cmd, []string{c.url})
	if err != nil {
		return err
	}
	defer to.close()
	spool := send.spool()
	defer spool.Close()
	m, err := send.message(cmd, spool)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), "\nThe test message:")
	report := send.send(cmd, m, to)
	if err := send.print(cmd, report); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return undelivered(report)
}
