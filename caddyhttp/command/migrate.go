package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caddy-notify/caddy-notify/caddyhttp"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// migrateFlags are the flags of the command migrate.
type migrateFlags struct {
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

func migrateCommand() *cobra.Command {
	f := new(migrateFlags)
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
		RunE: withExitCode(f.run),
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "out", "o", "notify", "The folder for the Caddyfile and the secrets")
	flags.StringVar(&f.envFile, "env-file", "", "A file with the variables of the Apprise API, one NAME=value on each line; - is standard input (default: the environment)")
	flags.StringSliceVarP(&f.keys, "key", "k", nil, "A key to move; may be repeated (default: every key that the folder or server lists)")
	flags.StringVar(&f.secretKey, "secret-key", "", "SECRET_KEY of the Apprise API, for a folder in hash mode; {env.NAME} and {file./path} are replaced (default: the variable, or the default of Apprise API)")
	flags.BoolVarP(&f.force, "force", "f", false, "Replace existing files, or with --save existing keys")
	flags.BoolVar(&f.save, "save", false, "Save the keys into the storage of --config instead of writing a Caddyfile")
	flags.StringVarP(&f.config, "config", "c", "", "The configuration with configs, for --save (default: Caddyfile)")
	flags.StringVarP(&f.adapter, "adapter", "a", "", "The adapter of --config (default: caddyfile, unless it is JSON)")
	flags.StringVar(&f.defaultTag, "default-tag", "", "What a message without a tag reaches in the saved keys, for --save: untagged, a tag, or all; the same as default_tag in configs, and all without it")
	flags.StringVar(&f.space, "space", "", "The space of configs, for --save; default is the one without a name (default: the only one)")
	return cmd
}

func (f *migrateFlags) run(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give one argument: the configuration folder of the Apprise API, or its address, such as http://apprise.example.com:8000")
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
	out, err := secretsRoot(f.out)
	if err != nil && !f.save {
		return err
	}
	env, err := f.environment(cmd.InOrStdin())
	if err != nil {
		return err
	}
	m, err := newMigration(env)
	if err != nil {
		return err
	}
	saved, err := f.read(cmd, m, args[0])
	if err != nil {
		return err
	}
	if f.save {
		return f.saveKeys(cmd, m, saved)
	}
	for _, s := range saved {
		m.addKey(cmd.Context(), s)
	}
	files, err := m.files(out)
	if err != nil {
		return err
	}
	if err := writeFiles(out, files, f.force, "choose another folder with --out, or replace the files with --force"); err != nil {
		return err
	}
	if err := checkWritten(filepath.Join(out, caddyfileName)); err != nil {
		return fmt.Errorf("the files are written, but the Caddyfile does not load: %w", err)
	}
	return m.report(cmd.OutOrStdout(), fmt.Sprintf("Written: %s, and %s with secrets in %s", filepath.Join(out, caddyfileName),
		count(len(files)-1, "file"), filepath.Join(out, secretsFolder)))
}

// read returns the configurations that are saved in a folder or on a server.
func (f *migrateFlags) read(cmd *cobra.Command, m *migration, source string) (saved []savedConfig, err error) {
	if m.stateless() {
		m.note("APPRISE_STATEFUL_MODE: the keys are disabled, so none is moved")
		return nil, nil
	}
	if u, parseErr := url.Parse(source); parseErr == nil && (u.Scheme == "http" || u.Scheme == "https") {
		if err := m.setServerLogin(u); err != nil {
			return nil, err
		}
		saved, err = m.readServer(cmd.Context(), source, f.keys)
	} else {
		secretKey, secretErr := placeholder.Resolve(f.secretKey)
		if secretErr != nil {
			return nil, fmt.Errorf("--secret-key: %w", secretErr)
		}
		saved, err = m.readFolder(source, strings.TrimSpace(secretKey), f.keys)
	}
	if err == nil && len(saved) == 0 && len(m.defaultURLs) == 0 {
		err = errors.New("nothing was found that could be moved")
		if reasons := slices.Concat(m.unmoved, m.notes); len(reasons) > 0 {
			err = fmt.Errorf("%w: %s", err, strings.Join(reasons, "; "))
		}
	}
	return saved, err
}

// checkWritten returns an error if a Caddyfile does not load.
func checkWritten(name string) error {
	config, err := caddyhttp.ReadConfig(nil, name, "caddyfile")
	if err != nil {
		return err
	}
	return config.Validate()
}

// migration is the configuration of an Apprise API in the terms of a Caddyfile. Each of its
// many methods reads one setting of the API or writes one part of the Caddyfile.
type migration struct {
	env map[string]string

	address     string // of the site
	prefix      string // of all paths, or ""
	keys        []migratedKey
	defaultURLs []migratedURL
	services    *caddyhttp.Services
	attachments []string // lines of the block
	pageOff     bool
	noRedirects bool
	noURLs      bool     // requests cannot bring URLs
	origins     []string // trusted_origins
	login       *login   // nil if everybody may use the Apprise API

	moved   []string // the keys, for the report
	notes   []string // what is different
	unmoved []string // what is missing in the Caddyfile, and why
}

// newMigration returns a migration with the settings of the environment of an
// Apprise API, and without keys.
func newMigration(env map[string]string) (*migration, error) {
	m := &migration{env: env, address: "http://:8000", services: new(caddyhttp.Services)}
	if err := m.setServices(); err != nil {
		return nil, err
	}
	m.setVariables(slices.Sorted(maps.Keys(env)))
	if err := m.setLogin(); err != nil {
		return nil, err
	}
	if m.noURLs {
		if env["APPRISE_STATELESS_URLS"] != "" {
			m.note("APPRISE_STATELESS_URLS: APPRISE_STATELESS_MODE turns these URLs off")
		}
		return m, nil
	}
	for i, u := range api.SplitURLs(env["APPRISE_STATELESS_URLS"]) {
		at := fmt.Sprintf("APPRISE_STATELESS_URLS, URL %d", i+1)
		if u, ok := m.url(at, u); ok {
			m.defaultURLs = append(m.defaultURLs, u)
		}
	}
	return m, nil
}

// Values of APPRISE_STATEFUL_MODE.
const (
	hashMode   = "hash"
	simpleMode = "simple"
)

// stateless reports whether the Apprise API has no keys. It treats an unknown
// mode as disabled.
func (m *migration) stateless() bool {
	return !slices.Contains([]string{"", hashMode, simpleMode}, m.mode())
}

// mode returns APPRISE_STATEFUL_MODE, or "" if it is not set.
func (m *migration) mode() string {
	return strings.ToLower(strings.TrimSpace(m.env["APPRISE_STATEFUL_MODE"]))
}

// defaultKey returns the key that the pages of the Apprise API open first.
func (m *migration) defaultKey() string { return cmp.Or(m.env["APPRISE_DEFAULT_CONFIG_ID"], "apprise") }
