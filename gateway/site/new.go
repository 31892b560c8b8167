package site

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Options are the settings of a site. An unset one is inherited from Base or, without Base, has its
// default.
type Options struct {
	Base *Site // the site that all others inherit from; nil for that site itself

	Keys        []KeyOptions // in addition to the keys of Base, and before them
	DefaultURLs []URL        // for POST /notify without URLs
	Ruler       *Ruler       // replaces the ruler of Base as a whole; default: [NewRuler] of the zero Ruler

	Stateless *bool // POST /notify takes URLs of clients; default: true
	Callbacks *bool // a question may name an address that gets the outcome; default: the value of Stateless
	MCP       *bool // agents can use keys by the Model Context Protocol; default: false
	Titles    *bool // the titles of messages to keys are kept with their results; default: false
	ConfigID  *bool // X-Apprise-Config-ID names keys without a token, too; default: false

	Services *ServiceRule   // default: all services
	Egress   *egress.Policy // for URLs of clients; default: public addresses
	MaxBody  int64          // size of a request without its files, in bytes; default: 8 MiB
	Files    *FileOptions   // replaces the files of Base as a whole
	Timeout  time.Duration  // time of a delivery to one destination; default: 30 s

	MaxInFlight int            // messages under way; default: 1000
	Clients     *ClientOptions // replaces the clients of Base as a whole

	PropagateTrace *bool  // requests to destinations continue the trace; default: false
	PublicURL      string // the beginning of links, without a slash at its end; default: none
	Page           *bool  // browsers get pages; default: true

	TrustedOrigins []string // origins whose pages may send from a visitor's browser, or "*"; default: none
	Identity       *notifier.Identity
	Push           *Push     // default: no devices
	Managers       *Managers // nil for nobody; not inherited

	// Parse returns the destination of a URL of the operator. Several goroutines may call it
	// at once. Default: [notifier.ParseWithFiles].
	Parse func(URL) (*notifier.Destination, error)

	// Secret returns the secret that text stands for, for example with its placeholders replaced.
	// Default: the text itself.
	Secret func(text string) (string, error)

	Log *zap.Logger // logs warnings about keys; default: none
}

// FileOptions limit the files of a message. The zero value has the defaults.
type FileOptions struct {
	MaxSize  int64 // size of each, in bytes; default: 200 MiB
	MaxCount *int  // 0 for no files; default: 6
	Remote   *bool // requests may name files by their address; default: true
}

// ClientOptions limit how much clients can make a site do. The zero value has the defaults.
type ClientOptions struct {
	InFlight           int           // of the messages under way; default: half of them
	InFlightPerAddress int           // of these; default: an eighth
	Memory             int64         // memory of requests under way, in bytes; default: 256 MiB, or what max_body needs
	Deliveries         int           // deliveries of a message; default: 500
	Requests           int           // requests of a message; default: 1500
	Bytes              int64         // bytes that a message sends; default: 256 MiB
	Retry              *int          // maximum of retry; default: 2
	Wait               time.Duration // minimum of wait; default: 1 s
}

// URL is a notification URL of the operator.
type URL struct {
	URL  string
	Dir  string // the folder for relative paths in the URL; "" for the working directory
	Tags []string
}

// The defaults of [Options].
const (
	DefaultMaxInFlight = 1000

	defaultMaxBody    = 8 << 20
	defaultMaxSize    = 200 << 20
	defaultMaxCount   = 6
	defaultMemory     = 256 << 20
	defaultDeliveries = 500
	defaultRequests   = 1500
	defaultBytes      = 256 << 20
	defaultRetry      = 2
	defaultWait       = time.Second
)

// SettingError is an error in a setting of [Options]. Its text says what is wrong.
type SettingError struct {
	Setting string // "key ops", "key ops, URL 2", "client_limits"; "" for the others
	Err     error
}

// Error returns the text of Err.
func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *SettingError) Unwrap() error { return e.Err }

// ErrDefaultsUnused is returned for default URLs of a site that takes no messages without a
// key.
var ErrDefaultsUnused = errors.New("default_urls has no effect with stateless off, because only POST /notify uses it; remove one of them")

// New returns the site that options describe, with all defaults. The caller sets Saved and Devices,
// if any, before the site is used. An error about a setting that has a place of its own is a
// [*SettingError].
func New(o Options) (*Site, error) {
	s, err := o.inherited()
	if err != nil {
		return nil, err
	}
	s.Services = cmp.Or(o.Services, s.Services)
	if err := s.setLimits(&o); err != nil {
		return nil, err
	}
	set(&s.Stateless, o.Stateless)
	if o.Stateless != nil && !s.Stateless && len(o.DefaultURLs) > 0 {
		return nil, ErrDefaultsUnused
	}
	s.Callbacks, s.callbacks = s.Stateless, cmp.Or(o.Callbacks, s.callbacks)
	set(&s.Callbacks, s.callbacks)
	set(&s.ConfigID, o.ConfigID)
	set(&s.MCP, o.MCP)
	set(&s.Titles, o.Titles)
	set(&s.PropagateTrace, o.PropagateTrace)
	set(&s.Page, o.Page)
	s.PublicURL, s.Ruler = cmp.Or(o.PublicURL, s.PublicURL), cmp.Or(o.Ruler, s.Ruler)
	if len(o.TrustedOrigins) > 0 {
		if s.TrustedOrigins, err = TrustedOrigins(o.TrustedOrigins); err != nil {
			return nil, fmt.Errorf("trusted_origins: %w", err)
		}
	}
	s.Identity, s.Push, s.Managers = cmp.Or(o.Identity, s.Identity), cmp.Or(o.Push, s.Push), o.Managers
	if err := s.setDestinations(&o); err != nil {
		return nil, err
	}
	return s, s.checkMCP()
}

// checkMCP returns an error if agents could use a key without a secret.
func (s *Site) checkMCP() error {
	if !s.MCP {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		if len(s.Keys[name].Tokens) == 0 {
			return &SettingError{
				"key " + name,
				fmt.Errorf("key %s: with mcp on, agents need a token of each key; add token <secret> to the key, or remove mcp", name),
			}
		}
	}
	return nil
}

// set copies a value that is configured.
func set[T any](to, configured *T) {
	if configured != nil {
		*to = *configured
	}
}

// inherited returns a copy of the base or, without one, a site with the defaults.
func (o *Options) inherited() (*Site, error) {
	if o.Base != nil {
		s := *o.Base
		return &s, nil
	}
	policy, err := message.NewPolicy(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making the default policy: %w", err)
	}
	ruler, err := NewRuler(Ruler{})
	if err != nil {
		return nil, fmt.Errorf("making the default ruler: %w", err)
	}
	identity := notifier.DefaultIdentity()
	return &Site{
		Stateless: true, Page: true, Identity: &identity, Ruler: ruler,
		Limits: Limits{
			Limits: message.Limits{
				MaxBody: defaultMaxBody, MaxFiles: defaultMaxCount, MaxFileSize: defaultMaxSize,
				RemoteFiles: true, FetchTimeout: notifier.DefaultTimeout, Egress: policy,
			},
			Timeout:  notifier.DefaultTimeout,
			InFlight: InFlightLimits{Total: DefaultMaxInFlight},

			DefaultFiles: true,
		},
	}, nil
}

// setLimits sets sizes, counts and times.
func (s *Site) setLimits(o *Options) error {
	l := &s.Limits
	l.Egress = cmp.Or(o.Egress, l.Egress)
	switch {
	case o.MaxBody < 0:
		return fmt.Errorf("max_body is %d; it must be a number of bytes above 0", o.MaxBody)
	case o.Timeout < 0:
		return errors.New("timeout is negative; it must be a duration above 0, such as 30s")
	case o.MaxInFlight < 0:
		return fmt.Errorf("max_in_flight is %d; it must be a number of messages above 0", o.MaxInFlight)
	}
	l.MaxBody = cmp.Or(o.MaxBody, l.MaxBody)
	if o.Timeout > 0 {
		l.Timeout, l.FetchTimeout = o.Timeout, o.Timeout
	}
	total := cmp.Or(o.MaxInFlight, l.InFlight.Total)
	set(&s.clients, o.Clients)
	err := l.setClients(&s.clients, total)
	if err == nil && o.Clients != nil { // the limits of Base may exceed the site's
		err = s.clients.checkInFlight(&l.InFlight)
	}
	if err != nil {
		return &SettingError{"client_limits", fmt.Errorf("client_limits: %w", err)}
	}
	return l.setFiles(o.Files)
}

// setFiles sets the limits of files.
func (l *Limits) setFiles(o *FileOptions) error {
	switch {
	case o == nil:
		return nil
	case o.MaxSize < 0:
		return fmt.Errorf("attachments: max_size is %d; it must be a number of bytes above 0", o.MaxSize)
	case o.MaxCount != nil && *o.MaxCount < 0:
		return fmt.Errorf("attachments: max_count is %d; it must be 0 (no files) or more", *o.MaxCount)
	}
	l.MaxFileSize, l.MaxFiles, l.RemoteFiles = cmp.Or(o.MaxSize, defaultMaxSize), defaultMaxCount, true
	l.DefaultFiles = o.MaxCount == nil
	set(&l.MaxFiles, o.MaxCount)
	set(&l.RemoteFiles, o.Remote)
	return nil
}

// setClients sets the limits of clients, many of which depend on other limits. total is the number
// of messages that may be under way.
func (l *Limits) setClients(c *ClientOptions, total int) error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"in_flight", int64(c.InFlight)},
		{"in_flight_per_address", int64(c.InFlightPerAddress)},
		{"memory", c.Memory},
		{"deliveries", int64(c.Deliveries)},
		{"requests", int64(c.Requests)},
		{"bytes", c.Bytes},
		{"wait", int64(c.Wait)},
	} {
		if n.value < 0 {
			return fmt.Errorf("%s is %d; it must be above 0", n.name, n.value)
		}
	}
	retry := defaultRetry
	if set(&retry, c.Retry); retry < 0 {
		return fmt.Errorf("retry is %d; it must be 0 (no retries) or more", retry)
	}
	l.Client = &notifier.Limits{
		Deliveries: cmp.Or(c.Deliveries, defaultDeliveries),
		Requests:   cmp.Or(c.Requests, defaultRequests),
		Bytes:      cmp.Or(c.Bytes, defaultBytes),
		Retry:      retry,
		Wait:       cmp.Or(c.Wait, defaultWait),
		Setting:    "client_limits",
	}
	l.InFlight = newInFlightLimits(total, c.InFlight, c.InFlightPerAddress)
	minimum := l.MinMemory()
	if c.Memory > 0 && c.Memory < minimum {
		return fmt.Errorf("memory is %s; it must be at least 8 times max_body, %s", humanize.IBytes(uint64(c.Memory)),
			humanize.IBytes(uint64(minimum)))
	}
	l.Memory = cmp.Or(c.Memory, max(defaultMemory, minimum))
	return nil
}

// checkInFlight returns an error for a limit that has no effect because it is larger than the limit
// around it.
func (c *ClientOptions) checkInFlight(l *InFlightLimits) error {
	if c.InFlight > l.Total {
		return fmt.Errorf("in_flight is %d, but max_in_flight lets only %d messages be under way; lower in_flight, or raise max_in_flight",
			c.InFlight, l.Total)
	}
	if c.InFlightPerAddress > l.Clients {
		by := ""
		if c.InFlight == 0 {
			by = ", half of max_in_flight"
		}
		return fmt.Errorf("in_flight_per_address is %d, but in_flight for all addresses is %d%s; lower in_flight_per_address, or raise in_flight",
			c.InFlightPerAddress, l.Clients, by)
	}
	return nil
}

// setDestinations sets the targets of default URLs and the keys.
func (s *Site) setDestinations(o *Options) error {
	m := &keyMaker{site: s, options: o, log: cmp.Or(o.Log, zap.NewNop())}
	if len(o.DefaultURLs) > 0 {
		targets := make([]notifier.Target, len(o.DefaultURLs))
		for i, u := range o.DefaultURLs {
			d, err := m.destination(u)
			if err != nil {
				setting := fmt.Sprintf("default_urls, URL %d", i+1)
				return &SettingError{setting, fmt.Errorf("%s: %w", setting, err)}
			}
			targets[i].Destination = d
		}
		s.DefaultTargets = targets
		m.logWarnings()
	}
	made, err := m.makeAll(o.Keys)
	if err != nil {
		return err
	}
	keys := make(map[string]*Key, len(s.Keys)+len(made))
	maps.Copy(keys, s.Keys)
	for _, k := range made {
		keys[k.Name] = k
	}
	s.Keys, s.hasSecrets = keys, false
	for _, k := range keys {
		s.hasSecrets = s.hasSecrets || len(k.Tokens)+len(k.Readers) > 0
	}
	return nil
}
