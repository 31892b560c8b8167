package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// setVariables makes the settings that the variables of an Apprise API stand for.
func (s *settings) setVariables() {
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		set, known := variables[name]
		switch {
		case set != nil:
			set(s, name, s.env[name])
		case strings.HasPrefix(name, templatePrefix): // see checkTemplate
		case !known && strings.HasPrefix(name, "APPRISE_"):
			s.report.skip("%s: the variable is unknown", name)
		}
	}
}

// setter makes the setting that a variable with a value stands for, or tells why
// there is none.
type setter func(s *settings, name, value string)

// variables are the variables that an Apprise API knows. Those with nil need no
// setting here, or are read elsewhere.
var variables = map[string]setter{
	"ALLOWED_HOSTS":             skipUnless("write these names as the addresses of the site", "*"),
	"APPRISE_API_ONLY":          func(s *settings, _, value string) { s.pageOff = isOn(value) },
	"APPRISE_ATTACH_ALLOW_URL":  (*settings).setRemoteFiles,
	"APPRISE_ATTACH_REJECT_URL": (*settings).checkRejected,
	"APPRISE_ATTACH_SIZE":       number((*settings).setFileSize),
	"APPRISE_BASE_URL":          (*settings).setPrefix,
	"APPRISE_DEFAULT_FORMAT":    skipUnless("messages without a format are plain text; let the clients send the format", "text"),
	"APPRISE_HTTP_REDIRECTS":    (*settings).setRedirects,
	"APPRISE_INTERPRET_EMOJIS":  skipUnless("there is no setting for all URLs; add ?emojis=yes or ?emojis=no to the URLs"),
	"APPRISE_MAX_ATTACHMENTS":   number((*settings).setFileCount),
	"APPRISE_PLUGIN_PATHS": skipUnless("plugins of your own cannot be used; send to a program of yours with a json:// URL",
		"/plugin"),
	"APPRISE_RECURSION_MAX":             skipUnless("the limit is 1 and cannot be changed", "1"),
	"APPRISE_STATELESS_MODE":            func(s *settings, _, value string) { s.noURLs = value != "" && !isOn(value) },
	"APPRISE_TRUSTED_ORIGINS":           (*settings).setOrigins,
	"APPRISE_WEBHOOK_MAPPING_MAX_DEPTH": noteUnless("field mapping has different limits, see docs/api.md", "5"),
	"APPRISE_WEBHOOK_URL": skipUnless(`let events post the results to the address, ` +
		`see "Post the outcome to an address" in docs/events-and-logs.md`),
	"BASE_URL":  (*settings).setPrefix,
	"HTTP_PORT": (*settings).setPort,
	"IPV4_ONLY": (*settings).skipBind,
	"IPV6_ONLY": (*settings).skipBind,

	"APPRISE_ALLOW_SERVICES":   nil, // setServices
	"APPRISE_AUTH_REQUIRED":    nil, // setLogin
	"APPRISE_BASIC_AUTH_REALM": nil, // setLogin
	"APPRISE_DENY_SERVICES":    nil, // setServices
	"APPRISE_PASSWORD":         nil, // setLogin
	"APPRISE_STATEFUL_MODE":    nil, // mode
	"APPRISE_STATELESS_URLS":   nil, // defaultURLs
	"APPRISE_USER":             nil, // setLogin

	"APPRISE_ADMIN":                          nil,
	"APPRISE_ALLOW_TEMPLATES":                nil, // environment.templates
	"APPRISE_ATTACH_DIR":                     nil,
	"APPRISE_AUTH_PRUNE_INTERVAL_SECONDS":    nil,
	"APPRISE_AUTH_PRUNE_SECONDS":             nil,
	"APPRISE_CONNECTION_TIMEOUT":             nil,
	"APPRISE_PRUNE_ENABLED":                  nil,
	"APPRISE_PRUNE_INTERVAL_SECONDS":         nil,
	"APPRISE_PRUNE_TIMEOUT_SECONDS":          nil,
	"APPRISE_STORAGE_PRUNE_INTERVAL_SECONDS": nil,
	"APPRISE_STREAM_DISK_SIZE":               nil,
	"APPRISE_STREAM_HEARTBEAT_SECONDS":       nil,
	"APPRISE_STREAM_MEMORY_SIZE":             nil,
	"APPRISE_STREAM_QUEUE_SIZE":              nil,
	"APPRISE_STREAM_RETRY_AFTER_SECONDS":     nil,
	"APPRISE_STREAM_WORKER_COUNT":            nil,
	"APPRISE_WEB_AUTH_SECRET":                nil,
	"APPRISE_CONFIG_DIR":                     nil,
	"APPRISE_CONFIG_LOCK":                    nil,
	"APPRISE_CONFIG_MAX_LENGTH":              nil,
	"APPRISE_DEFAULT_CONFIG_ID":              nil,
	"APPRISE_DEFAULT_THEME":                  nil,
	"APPRISE_STATELESS_STORAGE":              nil,
	"APPRISE_STORAGE_DIR":                    nil,
	"APPRISE_STORAGE_MODE":                   nil,
	"APPRISE_STORAGE_PRUNE_DAYS":             nil,
	"APPRISE_STORAGE_UID_LENGTH":             nil,
	"APPRISE_UPLOAD_MAX_MEMORY_SIZE":         nil,
	"APPRISE_WORKER_COUNT":                   nil,
	"APPRISE_WORKER_MAX_REQUESTS":            nil,
	"APPRISE_WORKER_MAX_REQUESTS_JITTER":     nil,
	"APPRISE_WORKER_TIMEOUT":                 nil,
}

// skipUnless returns a setter for a variable that cannot be moved unless it is
// empty or has one of the values.
func skipUnless(why string, values ...string) setter {
	return func(s *settings, name, value string) {
		if value != "" && !slices.Contains(values, value) {
			s.report.skip("%s: %s", name, why)
		}
	}
}

// noteUnless returns a setter that notes a difference unless the variable is
// empty or has one of the values.
func noteUnless(difference string, values ...string) setter {
	return func(s *settings, name, value string) {
		if value != "" && !slices.Contains(values, value) {
			s.report.note("%s: %s", name, difference)
		}
	}
}

// number returns a setter for a variable that has a number.
func number(set func(s *settings, n int)) setter {
	return func(s *settings, name, value string) {
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil {
			s.report.skip("%s: it is not a whole number; the default is used", name)
			return
		}
		set(s, n)
	}
}

// setPort makes the site listen on the port of the Apprise API.
func (s *settings) setPort(name, value string) {
	if n, err := strconv.Atoi(value); err == nil && n > 0 && n <= math.MaxUint16 {
		s.address = "http://:" + value
	} else if value != "" {
		s.report.skip("%s: it is not the number of a port; the port is 8000", name)
	}
}

var pathPrefix = lazyregexp.New(`^(/[A-Za-z0-9._~-]+)+$`)

// setPrefix makes the site answer below a path.
func (s *settings) setPrefix(name, value string) {
	value = strings.Trim(cmp.Or(s.env["APPRISE_BASE_URL"], value), " /")
	if value == "" {
		return
	}
	if !pathPrefix.MatchString("/" + value) {
		s.report.skip("%s: the path has unusual characters; put the notify block into handle_path", name)
		return
	}
	s.prefix = "/" + value
}

// noFiles is the line of attachments that allows no files.
const noFiles = "max_count 0"

// maxAttachSize bounds APPRISE_ATTACH_SIZE, which is in MiB.
const maxAttachSize = 1 << 20

func (s *settings) setFileSize(n int) {
	if n <= 0 {
		s.attachments = []string{noFiles}
		return
	}
	s.attachments = append(s.attachments, fmt.Sprintf("max_size %dMiB", min(n, maxAttachSize)))
}

func (s *settings) setFileCount(n int) {
	if slices.Contains(s.attachments, noFiles) {
		return
	}
	if n <= 0 { // no limit
		n = math.MaxUint16
	}
	s.attachments = append(s.attachments, fmt.Sprintf("max_count %d", min(n, math.MaxUint16)))
}

func (s *settings) setRemoteFiles(name, value string) {
	switch strings.TrimSpace(value) {
	case "*":
	case "":
		s.attachments = append(s.attachments, "remote off")
	default:
		s.report.skip("%s: names of hosts cannot be allowed for attachments; allow address ranges "+
			"with egress, or turn remote attachments off with attachments { remote off }", name)
	}
}

// checkRejected reports patterns of hosts. Patterns of this machine's own addresses are no loss,
// because these are denied in any case.
func (s *settings) checkRejected(name, value string) {
	for _, pattern := range strings.FieldsFunc(value, isListSeparator) {
		if !slices.Contains([]string{"127.0.*", "localhost*", "internal"}, strings.ToLower(pattern)) {
			s.report.skip("%s: names of hosts cannot be denied for attachments; "+
				"deny address ranges with egress. Private addresses are denied without it", name)
			return
		}
	}
}

// isListSeparator reports whether Apprise API separates the items of a list by r.
func isListSeparator(r rune) bool { return r == ',' || r == ' ' }

func (s *settings) setRedirects(name, value string) {
	if s.noRedirects = value != "" && !isOn(value); s.noRedirects {
		s.report.note("%s: the URLs below have redirect=no; URLs of clients do not", name)
	}
}

// setOrigins makes the setting trusted_origins.
func (s *settings) setOrigins(name, value string) {
	for _, origin := range strings.FieldsFunc(strings.ToLower(value), isListSeparator) {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" ||
			!plainHost.MatchString(u.Host) || u.Path+u.RawQuery+u.Fragment != "" || u.User != nil {
			s.report.skip("%s: an item is not an origin such as https://alerts.example.com; write it into trusted_origins as one", name)
			continue
		}
		host := u.Host
		if usual := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; strings.HasSuffix(host, usual) {
			host = strings.TrimSuffix(host, usual)
		}
		if origin = u.Scheme + "://" + host; !slices.Contains(s.origins, origin) {
			s.origins = append(s.origins, origin)
		}
	}
}

var plainHost = lazyregexp.New(`^([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?$`)

func (s *settings) skipBind(name, value string) {
	if isOn(value) {
		s.report.skip("%s: write bind 0.0.0.0 or bind [::] into the site", name)
	}
}
