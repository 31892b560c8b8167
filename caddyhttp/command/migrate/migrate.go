package migrate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/exit"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
)

// flags are the flags of the command migrate.
type flags struct {
	out       string
	envFile   string
	secretKey string
	keys      []string
	force     bool

	// Of --save.
	save    bool
	config  string
	adapter string
	space   string

	defaultTag string
}

// Command returns the command migrate of caddy notify.
func Command() *cobra.Command {
	f := new(flags)
	cmd := &cobra.Command{
		Use:   "migrate [--out <folder> | --save --config <file>] [--env-file <file>] [--key <name>]... <folder>|<url>",
		Short: "Moves the keys of an Apprise API into a Caddyfile or into saved keys",
		Long: `
Reads the saved configurations and the settings of an Apprise API, and writes a
Caddyfile with the same keys, tags and settings. Notification URLs go into files
of their own, which only the user of this command can read.

The argument is the configuration folder of the Apprise API (/config in its
container), or the address of a running one. Name the keys with --key for a
folder in hash mode, which does not contain their names, and for a server that
does not list its keys. In a folder in hash mode, the key of
APPRISE_DEFAULT_CONFIG_ID (by default, apprise) is looked for in any case.

The settings are the variables of the container, such as APPRISE_STATELESS_URLS.
They come from --env-file or, without it, from the environment. If the Apprise API
needs a login (APPRISE_AUTH_REQUIRED, or one in its address), the site needs the
same.

With --save, the command writes no Caddyfile. It saves the keys where a site with
configs keeps its own: in the storage of the configuration of --config, under the
limits and the secret of configs. The site may be running. Run the command as the
user who runs Caddy. If the sites have several spaces of saved keys, name one with
--space. The settings of the Apprise API are not moved then. A message without a
tag goes to the URLs that default_tag in configs says. If it is not set and a key
has URLs with tags, nothing is saved: write default_tag untagged into configs for
what Apprise API does, or give --default-tag all.

The output lists what is different and what was not moved, with the reason. It
contains no secrets. Existing files and saved keys are not replaced without
--force.

Exit codes:

  0  everything was moved
  1  nothing was written, or the Caddyfile does not load; the error tells why
  2  the Caddyfile or keys were written, but something was not moved
`,
		Example: `  caddy notify migrate /srv/apprise/config --out /etc/caddy/notify
  docker exec apprise env | caddy notify migrate --env-file - --key ops --key home ./config
  caddy notify migrate --key ops http://apprise.example.com:8000
  caddy notify migrate --save --config /etc/caddy/Caddyfile --key ops ./config`,
		RunE: exit.WithCode(f.run),
	}
	set := cmd.Flags()
	set.StringVarP(&f.out, "out", "o", "notify", "The folder for the Caddyfile and the secrets")
	set.StringVar(&f.envFile, "env-file", "",
		"A file with the variables of the Apprise API, one NAME=value on each line; - is standard input (default: the environment)")
	set.StringSliceVarP(&f.keys, "key", "k", nil, "A key to move; may be repeated (default: every key that the folder or server lists)")
	set.StringVar(&f.secretKey, "secret-key", "",
		"SECRET_KEY of the Apprise API, for a folder in hash mode; {env.NAME} and "+
			"{file./path} are replaced (default: the variable, or the default of Apprise API)")
	set.BoolVarP(&f.force, "force", "f", false, "Replace existing files, or with --save existing keys")
	set.BoolVar(&f.save, "save", false, "Save the keys into the storage of --config instead of writing a Caddyfile")
	set.StringVarP(&f.config, "config", "c", "", "The configuration with configs, for --save (default: Caddyfile)")
	set.StringVarP(&f.adapter, "adapter", "a", "", "The adapter of --config (default: caddyfile, unless it is JSON)")
	set.StringVar(&f.defaultTag, "default-tag", "",
		"What a message without a tag reaches in the saved keys, for --save: "+
			"untagged, a tag, or all; the same as default_tag in configs, and all without it")
	set.StringVar(&f.space, "space", "", "The space of configs, for --save; default is the one without a name (default: the only one)")
	return cmd
}

func (f *flags) run(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give one argument: the configuration folder of the Apprise API, " +
			"or its address, such as http://apprise.example.com:8000")
	}
	if f.save != (f.config != "") || f.save && cmd.Flags().Changed("out") {
		return errors.New("--save needs --config and writes no Caddyfile: give --save with --config, or --out alone")
	}
	if f.space != "" && !f.save {
		return errors.New("--space chooses where --save saves; give --save, too, or remove it")
	}
	if f.defaultTag != "" && !f.save {
		return errors.New("--default-tag is for --save; in a Caddyfile, each key has its own default_tag")
	}
	out, err := folder.Path(f.out)
	if err != nil && !f.save {
		return err
	}
	env, err := readEnvironment(cmd.InOrStdin(), f.envFile)
	if err != nil {
		return err
	}
	r := new(report)
	s, err := newSettings(env, r)
	if err != nil {
		return err
	}
	c := converter{settings: s, report: r}
	defaultURLs := c.defaultURLs()
	saved, err := f.read(cmd.Context(), s, args[0])
	if err == nil && len(saved)+len(defaultURLs) == 0 && !env.stateless() {
		err = r.nothingFound()
	}
	if err != nil {
		return err
	}
	if f.save {
		return f.saveKeys(cmd, s, saved, len(defaultURLs))
	}
	keys := c.keys(cmd.Context(), saved)
	files, err := migratedFiles(out, s, keys, defaultURLs)
	if err != nil {
		return err
	}
	if err := folder.Write(out, files, f.force, "choose another folder with --out, or replace the files with --force"); err != nil {
		return err
	}
	if err := folder.Check(filepath.Join(out, folder.Caddyfile)); err != nil {
		return fmt.Errorf("the files are written, but the Caddyfile does not load: %w", err)
	}
	r.note("the routes /add, /get, /del, /cfg, /json/urls, /status and /details of Apprise API are off without configs in the site: " +
		"clients use /notify/{KEY}, and monitors /notify/status")
	return r.write(cmd.OutOrStdout(), fmt.Sprintf("Written: %s, and %s with secrets in %s", filepath.Join(out, folder.Caddyfile),
		words.Count(len(files)-1, "file"), filepath.Join(out, folder.Secrets)))
}

// read returns the configurations that are saved in a folder or on a server. The address
// of a server may have a login, which becomes one of the settings.
func (f *flags) read(ctx context.Context, s *settings, source string) ([]savedConfig, error) {
	if s.env.stateless() {
		s.report.note("APPRISE_STATEFUL_MODE: the keys are disabled, so none is moved")
		return nil, nil
	}
	r := reader{env: s.env, report: s.report, locked: s.login != nil}
	if u, err := url.Parse(source); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		if err := s.setServerLogin(u); err != nil {
			return nil, err
		}
		return r.readServer(ctx, source, f.keys)
	}
	secretKey, err := placeholder.Resolve(f.secretKey)
	if err != nil {
		return nil, fmt.Errorf("--secret-key: %w", err)
	}
	return r.readFolder(source, strings.TrimSpace(secretKey), f.keys)
}
