package notifier

import (
	"net/url"
	"strconv"
	"strings"
	"unsafe"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// Server is the address of a self-hosted service, and the login there.
type Server struct {
	Secure   bool // TLS; from the URL's scheme
	User     string
	Password string
	Host     string
	Port     int // 0 for the default port of the scheme

	hasPassword bool // the URL has a colon behind the user, perhaps with nothing behind it
}

// Server binds the parameters user, password, host and port. Those that have a
// place in a template are documented.
func (s *Schema) Server(v *Server) {
	*v = Server{}
	s.server = new(s.bind(unsafe.Pointer(v)))
	s.String(&v.User, "user", "", "user name")
	s.Secret(&v.Password, "password", "password").Alias("pass")
	s.Host(&v.Host, "host", "name or address of the server").Dialled()
	s.Int(&v.Port, "port", 0, "port of the server").Range(1, 65535).NoDefault()
}

var hostPattern = lazyregexp.New(`(?i)^([\pL\pN_]([\pL\pN_-]{0,61}[\pL\pN_])?(\.[\pL\pN_]([\pL\pN_-]{0,61}[\pL\pN_])?)*\.?|` +
	`\[[0-9a-f:.]+(%[\w.-]+)?\])$`)

// Host binds the name or the address of a host.
func (s *Schema) Host(v *string, name, doc string) *Param {
	p := s.String(v, name, "", doc)
	p.pattern, p.example = hostPattern, []string{"example.com"}
	return p
}

// Dialled says that the host is the server that messages are sent to, for [Destination.Host]. If
// several such parameters are set, the last one counts.
func (p *Param) Dialled() *Param {
	p.dialled = true
	return p
}

// Login returns the user and the password for HTTP Basic authentication, or two
// empty texts if the URL has no user. For a URL with a user and no colon behind
// it, the password is "None": Apprise sends this, and servers are set up for
// it.
func (s *Server) Login() (user, password string) {
	if s.User != "" && s.Password == "" && !s.hasPassword {
		return s.User, "None"
	}
	return s.User, s.Password
}

// URL returns the address of the server with a path of these segments, as
// [Path] makes it. Its scheme is http or https.
func (s *Server) URL(segments ...string) string {
	if s.Secure {
		return s.URLWith("https", segments...)
	}
	return s.URLWith("http", segments...)
}

// URLWith is like [Server.URL] with another scheme.
func (s *Server) URLWith(scheme string, segments ...string) string {
	var b strings.Builder
	b.Grow(len(scheme) + len(s.Host) + 32)
	b.WriteString(scheme)
	b.WriteString("://")
	b.WriteString(strings.Replace(s.Host, "%", "%25", 1)) // the zone of an IPv6 address (RFC 6874)
	if s.Port != 0 {
		b.WriteByte(':')
		var digits [len("65535")]byte
		b.Write(strconv.AppendInt(digits[:0], int64(s.Port), 10))
	}
	writePath(&b, segments)
	return b.String()
}

// Path returns the path of a URL: each segment is escaped and has a slash before
// it. Empty segments are left out.
func Path(segments ...string) string {
	var b strings.Builder
	writePath(&b, segments)
	return b.String()
}

func writePath(b *strings.Builder, segments []string) {
	for _, segment := range segments {
		if segment != "" {
			b.WriteByte('/')
			b.WriteString(url.PathEscape(segment))
		}
	}
}
