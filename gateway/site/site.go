package site

import (
	"context"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Site says who may send what where, at the addresses of one handler. [New] makes it. It does not
// change.
type Site struct {
	Keys           map[string]*Key   // keys of the configuration, by name
	Ruler          *Ruler            // handling of the alerts that rulers post
	Stateless      bool              // POST /notify takes URLs of clients
	Callbacks      bool              // a question may name an address that gets the outcome
	MCP            bool              // agents can use keys by the Model Context Protocol
	Titles         bool              // the titles of messages to keys are kept with their results
	ConfigID       bool              // X-Apprise-Config-ID names keys without a token, too
	DefaultTargets []notifier.Target // of default_urls
	Services       *ServiceRule      // nil for all
	Limits         Limits
	PropagateTrace bool               // requests to destinations continue the trace of the client
	Page           bool               // browsers get pages
	Identity       *notifier.Identity // the sender, for destinations that show one
	Managers       *Managers          // nil if nobody may manage
	Saved          Finder             // finds saved keys

	Push    *Push // nil for no devices
	Devices Receivers

	TrustedOrigins []string // origins whose pages may send from a visitor's browser, or [AnyOrigin]

	PublicURL string // the beginning of links to the gateway; "" if unknown

	callbacks  *bool         // as configured; nil for the value of Stateless
	hasSecrets bool          // at least one key has a token or a reader
	clients    ClientOptions // as configured, for sites that inherit them
}

// Limits bound what clients can make a site do.
type Limits struct {
	message.Limits                // body and files of a request, and URLs in it
	Timeout        time.Duration  // time of a delivery to one destination, with all attempts
	InFlight       InFlightLimits // messages under way

	// DefaultFiles reports whether MaxFiles is the default.
	DefaultFiles bool
	Memory       int64 // memory of requests under way, in bytes
}

// Finder finds the saved keys of a site. The zero value finds none.
type Finder struct {
	// Find returns a key. The error has a [*message.Error]; it is an [*UnknownKeyError] if there is none.
	Find func(ctx context.Context, name string) (*Key, error)

	// Protected reports whether a saved key has a token.
	Protected func(context.Context) bool

	// Names returns the names of all saved keys.
	Names func(context.Context) ([]string, error)

	// Places returns the places of keys by name, as [Place.String] writes them. Keys that do not
	// exist are missing.
	Places func(ctx context.Context, names []string) (map[string]string, error)

	// Moved returns the keys that had a name before and have another now. It reads the storage.
	Moved func(ctx context.Context, name string) ([]*Key, error)

	// MayHaveMoved reports whether Moved may return a key. It reads no storage.
	MayHaveMoved func(name string) bool

	Space       string // space of the keys; "" for the default one
	KeySettings        // settings of every saved key
}

// On reports whether the site has saved keys.
func (f *Finder) On() bool { return f.Find != nil }

// Receivers adds the devices of keys to their destinations. The zero value adds none.
type Receivers struct {
	// Ready waits until the devices are known. If they cannot be read, it returns a
	// [*message.Error], so that no message is answered as if there were none.
	Ready func() error

	// Add returns a key with its devices among its destinations: the same key if it has
	// none.
	Add func(*Key) *Key
}

// wait waits until the devices are known.
func (r *Receivers) wait() error {
	if r.Ready == nil {
		return nil
	}
	return r.Ready()
}

// With returns a key with its devices among its destinations.
func (r *Receivers) With(k *Key) *Key {
	if r.Add == nil || k == nil {
		return k
	}
	return r.Add(k)
}

// Key returns the key with a name, with its devices. Keys of the configuration come before saved
// keys. The error has a [*message.Error]; it is an [*UnknownKeyError] if there is none.
func (s *Site) Key(ctx context.Context, name string) (*Key, error) {
	if err := s.Devices.wait(); err != nil {
		return nil, err
	}
	if k := s.Configured(name); k != nil {
		return k, nil
	}
	if !s.Saved.On() {
		return nil, &UnknownKeyError{name}
	}
	k, err := s.Saved.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.Devices.With(k), nil
}

// Moved returns the saved keys that had a name before and have another now, with their devices. The
// old name alone leads no client to them, but messages that came in under it are theirs.
func (s *Site) Moved(ctx context.Context, name string) ([]*Key, error) {
	if !s.Saved.On() {
		return nil, nil
	}
	if err := s.Devices.wait(); err != nil {
		return nil, err
	}
	keys, err := s.Saved.Moved(ctx, name)
	for i, k := range keys {
		keys[i] = s.Devices.With(k)
	}
	return keys, err
}

// Configured returns a key of the configuration with its devices, or nil.
func (s *Site) Configured(name string) *Key {
	if k := s.Keys[name]; k != nil {
		return s.Devices.With(k)
	}
	return nil
}

// ConfiguredName returns name if the configuration has a key of that name, and otherwise "".
func (s *Site) ConfiguredName(name string) string {
	if s.Keys[name] == nil {
		return ""
	}
	return name
}

// IncidentLink returns the link to the page on which an incident can be acknowledged. Its address
// is "" if the incident cannot be acknowledged or the address of the gateway is unknown.
func (s *Site) IncidentLink(x *rules.Incident) notifier.Link {
	if x == nil || s.PublicURL == "" || !x.IsOpen() || x.IsAcknowledged() {
		return notifier.Link{}
	}
	return notifier.Link{Label: notifier.AcknowledgeLabel, URL: s.PublicURL + RouteIncidents + "/" + x.ID}
}

// Managers are the clients that may manage: use the console and, if configs has manage, read and
// change saved keys.
type Managers struct {
	Open  bool     // every client that can send the request
	Named []string // users; none for every user and every client with a certificate
}

// Push are the settings of devices, checked and with defaults.
type Push struct {
	Contact string   // contact for push services; "" for the public URL
	Who     string   // who may subscribe: "invited", "users" or "open"
	Max     int      // devices per key
	Hosts   []string // additional push services
}

// ExpectsBeats reports whether a key of the site expects beats.
func (s *Site) ExpectsBeats() bool {
	for _, k := range s.Keys {
		if len(k.Expects) > 0 {
			return true
		}
	}
	return false
}

// HasInboxes reports whether a key of the site, or every saved key, has an inbox.
func (s *Site) HasInboxes() bool {
	if s.Saved.Inbox != 0 {
		return true
	}
	for _, k := range s.Keys {
		if k.Inbox != 0 {
			return true
		}
	}
	return false
}
