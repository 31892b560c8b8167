package caddyhttp

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// envLine matches a line that sets a variable.
var envLine = lazyregexp.New(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// readEnvFile reads a file with a variable on each line, in the format of
// docker's flag --env-file and of the output of env. Quotes around a value are
// removed.
func readEnvFile(stdin io.Reader, name string) (map[string]string, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		stdin = f
	}
	env := map[string]string{}
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxImportSize)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		m := envLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d: it sets no variable; write NAME=value", n)
		}
		value := strings.TrimSpace(m[2])
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		env[m[1]] = value
	}
	return env, lines.Err()
}

// newMigration returns a migration with the settings of the environment of an
// Apprise API, and without keys.
func newMigration(env map[string]string) (*migration, error) {
	m := &migration{env: env, address: "http://:8000", services: new(Services)}
	if err := m.setServices(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		m.setVariable(name, env[name])
	}
	for i, u := range api.SplitURLs(env["APPRISE_STATELESS_URLS"]) {
		at := fmt.Sprintf("APPRISE_STATELESS_URLS, URL %d", i+1)
		if u, ok := m.url(at, u); ok {
			m.defaultURLs = append(m.defaultURLs, u)
		}
	}
	return m, nil
}

// unneeded are the variables that need no setting here.
var unneeded = []string{
	"APPRISE_ADMIN", "APPRISE_ATTACH_DIR", "APPRISE_CONFIG_DIR", "APPRISE_CONFIG_LOCK", "APPRISE_CONFIG_MAX_LENGTH", "APPRISE_DEFAULT_CONFIG_ID",
	"APPRISE_DEFAULT_THEME", "APPRISE_STATELESS_STORAGE", "APPRISE_STORAGE_DIR", "APPRISE_STORAGE_MODE", "APPRISE_STORAGE_PRUNE_DAYS",
	"APPRISE_STORAGE_UID_LENGTH", "APPRISE_UPLOAD_MAX_MEMORY_SIZE", "APPRISE_WORKER_COUNT", "APPRISE_WORKER_MAX_REQUESTS",
	"APPRISE_WORKER_MAX_REQUESTS_JITTER", "APPRISE_WORKER_TIMEOUT",
}

// maxAttachSize bounds APPRISE_ATTACH_SIZE, which is in MiB.
const maxAttachSize = 1 << 20

// setVariable makes the setting that a variable stands for. Variables for
// services, keys and default URLs are read elsewhere.
func (m *migration) setVariable(name, value string) {
	switch name {
	case "HTTP_PORT":
		if n, err := strconv.Atoi(value); err == nil && n > 0 && n <= math.MaxUint16 {
			m.address = "http://:" + value
		} else if value != "" {
			m.skip("%s: it is not the number of a port; the port is 8000", name)
		}
	case "APPRISE_BASE_URL", "BASE_URL":
		m.setPrefix(name, cmp.Or(m.env["APPRISE_BASE_URL"], value))
	case "APPRISE_ATTACH_SIZE":
		m.setNumber(name, value, func(n int) {
			if n <= 0 {
				m.attachments = []string{"max_count 0"}
				return
			}
			m.attachments = append(m.attachments, fmt.Sprintf("max_size %dMiB", min(n, maxAttachSize)))
		})
	case "APPRISE_MAX_ATTACHMENTS":
		m.setNumber(name, value, func(n int) {
			if slices.Contains(m.attachments, "max_count 0") {
				return
			}
			if n <= 0 { // no limit
				n = math.MaxUint16
			}
			m.attachments = append(m.attachments, fmt.Sprintf("max_count %d", min(n, math.MaxUint16)))
		})
	case "APPRISE_ATTACH_ALLOW_URL":
		switch strings.TrimSpace(value) {
		case "*":
		case "":
			m.attachments = append(m.attachments, "remote off")
		default:
			m.skip("%s: names of hosts cannot be allowed for attachments; allow address ranges with egress, or turn remote attachments off with attachments { remote off }", name)
		}
	case "APPRISE_ATTACH_REJECT_URL":
		for _, pattern := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains([]string{"127.0.*", "localhost*", "internal"}, strings.ToLower(pattern)) {
				m.skip("%s: names of hosts cannot be denied for attachments; deny address ranges with egress. Private addresses are denied without it", name)
				return
			}
		}
	case "APPRISE_API_ONLY":
		m.pageOff = isOn(value)
	case "APPRISE_HTTP_REDIRECTS":
		if m.noRedirects = value != "" && !isOn(value); m.noRedirects {
			m.note("%s: the URLs below have redirect=no; URLs of clients do not", name)
		}
	case "APPRISE_WEBHOOK_URL":
		if value != "" {
			m.skip("%s: results are not posted to an address; use the event notify_failed, see docs/events-and-logs.md", name)
		}
	case "APPRISE_PLUGIN_PATHS":
		if value != "" && value != "/plugin" {
			m.skip("%s: plugins of your own cannot be used; send to a program of yours with a json:// URL", name)
		}
	case "APPRISE_INTERPRET_EMOJIS":
		if value != "" {
			m.skip("%s: there is no setting for all URLs; add ?emojis=yes or ?emojis=no to the URLs", name)
		}
	case "APPRISE_RECURSION_MAX":
		if value != "" && value != "1" {
			m.skip("%s: the limit is 1 and cannot be changed", name)
		}
	case "APPRISE_WEBHOOK_MAPPING_MAX_DEPTH":
		if value != "" && value != "5" {
			m.note("%s: field mapping has different limits, see docs/api.md", name)
		}
	case "ALLOWED_HOSTS":
		if value != "" && value != "*" {
			m.skip("%s: write these names as the addresses of the site", name)
		}
	case "IPV4_ONLY", "IPV6_ONLY":
		if isOn(value) {
			m.skip("%s: write bind 0.0.0.0 or bind [::] into the site", name)
		}
	case "APPRISE_STATELESS_URLS", "APPRISE_ALLOW_SERVICES", "APPRISE_DENY_SERVICES", "APPRISE_STATEFUL_MODE":
	default:
		if strings.HasPrefix(name, "APPRISE_") && !slices.Contains(unneeded, name) {
			m.skip("%s: the variable is unknown", name)
		}
	}
}

// isOn reports whether Apprise API treats the value of a variable as yes.
func isOn(value string) bool {
	return value != "" && strings.ContainsAny(value[:1], "aAyY1tTeE+")
}

// setNumber calls set with the number that a variable has.
func (m *migration) setNumber(name, value string, set func(int)) {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil {
		m.skip("%s: it is not a whole number; the default is used", name)
		return
	}
	set(n)
}

var pathPrefix = lazyregexp.New(`^(/[A-Za-z0-9._~-]+)+$`)

// setPrefix makes the site answer below a path.
func (m *migration) setPrefix(name, value string) {
	value = strings.Trim(value, " /")
	if value == "" {
		return
	}
	if !pathPrefix.MatchString("/" + value) {
		m.skip("%s: the path has unusual characters; put the notify block into handle_path", name)
		return
	}
	m.prefix = "/" + value
}

// schemePrefix matches the part of an item in a list of services that Apprise API uses.
var schemePrefix = lazyregexp.New(`^[A-Za-z][A-Za-z0-9]+`)

// deniedByDefault is the default of APPRISE_DENY_SERVICES.
const deniedByDefault = "windows,dbus,gnome,macosx,syslog"

// setServices makes the setting services. As in Apprise API, the allowed
// services take precedence over the denied ones.
func (m *migration) setServices() error {
	known := func(list string) (known, unknown []string) {
		for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
			scheme := strings.ToLower(schemePrefix.FindString(item))
			if scheme == "" {
				continue
			}
			if notifier.SchemesOf(scheme) == nil {
				unknown = append(unknown, scheme)
			} else if !slices.Contains(known, scheme) {
				known = append(known, scheme)
			}
		}
		return known, unknown
	}
	if allow := m.env["APPRISE_ALLOW_SERVICES"]; allow != "" {
		var unknown []string
		if m.services.Allow, unknown = known(allow); len(m.services.Allow) == 0 {
			return errors.New("APPRISE_ALLOW_SERVICES: none of its services exists here, so no message could be sent; caddy notify services lists all")
		}
		for _, scheme := range unknown {
			m.skip("APPRISE_ALLOW_SERVICES: there is no service %s", scheme)
		}
		return nil
	}
	deny, ok := m.env["APPRISE_DENY_SERVICES"]
	if !ok {
		deny = deniedByDefault
	}
	// An unknown service cannot be used, so it need not be denied.
	m.services.Deny, _ = known(deny)
	return nil
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
